import type { Message, Turn } from '../core/protocol/entities.ts';
import { type Io, styleFor } from './io.ts';
import { renderAuthor, renderMessage, renderNotice, renderReceipt, renderStatus } from './render.ts';
import { safeName, safeText } from './safe-text.ts';

/** What a follower tells about one chat. Messages come in order, each once. */
export interface RoomView {
  message(message: Message): void;
  /** A piece of an answer; with index 0 it is all of the answer so far. */
  delta(delta: { turnId: string; agentId: string; runId: string; index: number; text: string }): void;
  turn(turn: Turn): void;
  retrying(agentId: string, reason: string): void;
  tool(call: { agentId: string; tool: string; state: 'started' | 'done' | 'failed' }): void;
  /** Nothing is running any more: closes what is half printed. */
  settled(): void;
}

export interface RoomViewOptions {
  /** Name of an agent by its id. */
  nameOf(agentId: string): string;
  /** Print text as it is written; otherwise whole messages. */
  live: boolean;
  /** Called before every piece of output, so that a prompt can be taken away; `after` when it may stand again. */
  before?: () => void;
  after?: () => void;
  /** While true, answers come whole when they are done. */
  isHeld?: () => boolean;
}

interface Spoken {
  agentId: string;
  runId: string;
  text: string;
}

/**
 * Agents' words go to standard output, everything else to standard error. Live, one voice is shown at a
 * time; what others say meanwhile follows when it ends.
 */
export function createRoomView(io: Io, options: RoomViewOptions): RoomView {
  const out = styleFor(io.stdout);
  const err = styleFor(io.stderr);
  const voices = new Map<string, Spoken>();
  const ended = new Set<string>();
  let speaking: string | null = null;
  let held: Message[] = [];

  const rest = () => {
    if (speaking === null) options.after?.();
  };
  /** Ends the line of the voice that is speaking; it starts anew when it is heard again. */
  const hush = () => {
    if (speaking === null || !options.isHeld?.()) return;
    print('\n');
    nextVoice();
  };
  const print = (text: string) => {
    options.before?.();
    io.stdout.write(text);
  };
  const note = (text: string) => {
    options.before?.();
    io.stderr.write(`${text}\n`);
  };
  const authorOf = (agentId: string) => renderAuthor({ id: agentId, name: options.nameOf(agentId) }, out);

  const show = (message: Message) => {
    if (message.sender.kind === 'agent') print(`${renderMessage(message, out)}\n`);
    else if (message.sender.kind === 'human') note(renderMessage(message, err));
    else note(renderNotice(message, err));
    const receipt = renderReceipt(message.routing, err);
    if (receipt !== null) note(receipt);
  };

  const finish = (message: Message, spoken: Spoken) => {
    const rest = message.content.startsWith(spoken.text) ? message.content.slice(spoken.text.length) : null;
    // What is published may differ from what was streamed: control tags are taken out.
    print(rest === null ? `\n${renderMessage(message, out)}\n` : `${safeText(rest)}${renderStatus(message, out)}\n`);
    const receipt = renderReceipt(message.routing, err);
    if (receipt !== null) note(receipt);
  };

  const nextVoice = () => {
    speaking = null;
    const waiting = held;
    held = [];
    for (const message of waiting) show(message);
    if (options.isHeld?.()) return;
    for (const [turnId, spoken] of voices) {
      if (ended.has(turnId)) continue;
      speaking = turnId;
      print(`${authorOf(spoken.agentId)}: ${safeText(spoken.text)}`);
      return;
    }
  };

  return {
    message(message) {
      hush();
      const spoken = message.turnId === undefined ? undefined : voices.get(message.turnId);
      if (message.turnId !== undefined) {
        voices.delete(message.turnId);
        ended.add(message.turnId);
      }
      if (speaking !== null && speaking === message.turnId && spoken) {
        finish(message, spoken);
        nextVoice();
      } else if (speaking !== null) {
        held.push(message);
      } else {
        show(message);
      }
      rest();
    },
    delta({ turnId, agentId, runId, index, text }) {
      if (!options.live || ended.has(turnId)) return;
      if (speaking !== null && ended.has(speaking)) {
        print('\n');
        nextVoice();
      }
      const before = voices.get(turnId);
      const known = before?.runId === runId ? before.text : '';
      const whole = index === 0 ? text : known + text;
      voices.set(turnId, { agentId, runId, text: whole });
      if (options.isHeld?.()) return hush();
      if (speaking === turnId && whole.startsWith(known) && before?.runId === runId) {
        print(safeText(whole.slice(known.length)));
      } else if (speaking === null || speaking === turnId) {
        // Another execution of the turn starts from nothing: what stands there already is not the answer.
        print(`${speaking === turnId ? '\n' : ''}${authorOf(agentId)}: ${safeText(whole)}`);
        speaking = turnId;
      }
    },
    turn(turn) {
      if (['failed', 'stopped', 'silent'].includes(turn.state)) ended.add(turn.id);
      if (turn.state !== 'silent') return;
      note(err.dim(`${safeName(options.nameOf(turn.agentId))} chose silence`));
      rest();
    },
    retrying(agentId, reason) {
      note(err.warn(`${safeName(options.nameOf(agentId))} tries again: ${safeText(reason)}`));
      rest();
    },
    tool({ agentId, tool, state }) {
      const who = `${safeName(options.nameOf(agentId))}: ${safeName(tool)}`;
      note(state === 'failed' ? err.warn(`${who} failed`) : err.dim(`${who} ${state === 'done' ? 'done' : 'runs'}`));
      rest();
    },
    settled() {
      if (speaking !== null) print('\n');
      voices.clear();
      nextVoice();
      rest();
    },
  };
}
