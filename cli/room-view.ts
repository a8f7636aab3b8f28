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
  /** Nothing is running any more: closes what is half printed. */
  settled(): void;
}

export interface RoomViewOptions {
  /** Name of an agent by its id. */
  nameOf(agentId: string): string;
  /** Print text as it is written; otherwise whole messages. */
  live: boolean;
  /** Called around every piece of output, so that a prompt can be taken away and put back. */
  before?: () => void;
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
    for (const [turnId, spoken] of voices) {
      if (ended.has(turnId)) continue;
      speaking = turnId;
      print(`${authorOf(spoken.agentId)}: ${safeText(spoken.text)}`);
      return;
    }
  };

  return {
    message(message) {
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
      if (turn.state === 'silent') note(err.dim(`${safeName(options.nameOf(turn.agentId))} chose silence`));
    },
    retrying(agentId, reason) {
      note(err.warn(`${safeName(options.nameOf(agentId))} tries again: ${safeText(reason)}`));
    },
    settled() {
      if (speaking !== null) print('\n');
      voices.clear();
      nextVoice();
    },
  };
}
