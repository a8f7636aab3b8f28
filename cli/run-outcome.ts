import type { Approval, Message, Turn } from '../core/protocol/entities.ts';
import type { Posted } from '../core/protocol/requests.ts';
import { ExitCode, type Io, line, printJson, styleFor } from './io.ts';
import { safeName } from './safe-text.ts';

/** How a run ends. */
export type Ending = 'done' | 'failed' | 'limit' | 'approval' | 'timeout' | 'interrupted';
export const CODES: Record<Ending, ExitCode> = {
  done: ExitCode.done,
  failed: ExitCode.failed,
  limit: ExitCode.limit,
  approval: ExitCode.approval,
  timeout: ExitCode.failed,
  interrupted: ExitCode.interrupted,
};

/** Ids of the turns that a message led to, directly or through what agents said. */
export function ledBy(messageId: string, turns: readonly Turn[], heard: readonly Message[]): ReadonlySet<string> {
  const messages = new Set([messageId]);
  const led = new Set<string>();
  // A turn's trigger comes before its reply, so that one pass in the order of messages finds them all.
  for (const { trigger, id } of [...turns].sort((a, b) => a.trigger.seq - b.trigger.seq)) {
    if (!messages.has(trigger.messageId)) continue;
    led.add(id);
    for (const message of heard) if (message.turnId === id) messages.add(message.id);
  }
  return led;
}

/** The end that the turns of a run, what was said and what was decided make. */
export function judge(
  ours: readonly Turn[],
  all: readonly Turn[],
  heard: readonly Message[],
  decisions: readonly Approval[],
): Ending {
  if (ours.some(({ state }) => state === 'failed')) return 'failed';
  const waiting = new Set(all.filter(({ state }) => state === 'waiting').map(({ agentId }) => agentId));
  // Its agent may wait for what this run did not lead to and so does not decide.
  const isHeldUp = ({ state, agentId }: Turn) => state === 'waiting' || (state === 'queued' && waiting.has(agentId));
  if (ours.some(isHeldUp)) return 'approval';
  if (decisions.some(({ status }) => status !== 'answered')) return 'approval';
  return heard.some(({ notice }) => notice?.kind === 'limit') ? 'limit' : 'done';
}

/** One JSON object on standard output, or what the room has not said on standard error. */
export function report(
  io: Io,
  ending: Ending,
  turns: readonly Turn[],
  names: ReadonlyMap<string, string>,
  flags: { json?: boolean; timeout?: string },
  all: {
    world: string;
    chat: string;
    posted: Posted;
    heard: readonly Message[];
    approvals: readonly Approval[];
  },
): void {
  if (flags.json) {
    const { world, chat, posted, heard, approvals } = all;
    printJson(io, {
      status: ending,
      world,
      chat,
      message: posted.message,
      routing: posted.routing,
      messages: heard,
      turns,
      approvals,
    });
    return;
  }
  const style = styleFor(io.stderr);
  for (const turn of turns) {
    // The room has its own notice of a failure; a stop has none.
    if (turn.state === 'stopped')
      line(io.stderr, style.warn(`${safeName(names.get(turn.agentId) ?? turn.agentId)} was stopped`));
  }
  if (ending === 'approval' && all.approvals.every(({ status }) => status === 'answered')) {
    line(io.stderr, style.warn('an approval still waits: parley approvals list shows it'));
  }
  if (ending === 'timeout') line(io.stderr, style.bad(`not done after ${flags.timeout} s: stopped`));
  if (ending === 'interrupted') line(io.stderr, style.warn('interrupted: stopped'));
}
