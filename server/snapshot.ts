import type { LiveText } from '../core/parley.ts';
import type { LiveEvent } from '../core/protocol/events.ts';
import type { AgentId, ChatId, TurnId, WorldId } from '../core/protocol/ids.ts';

/** Running turns as deltas of index 0 that carry all the text so far; the next delta goes on from there. */
export function snapshotOf(world: string, texts: readonly LiveText[]): LiveEvent[] {
  const at = new Date().toISOString();
  return texts.flatMap((live) => {
    const base = { world: world as WorldId, chat: live.chat as ChatId, at };
    const data = { turnId: live.turnId as TurnId, agentId: live.agentId as AgentId, runId: live.runId, index: 0 };
    const events: LiveEvent[] = [];
    if (live.reasoning !== '')
      events.push({ type: 'reasoning.delta', ...base, data: { ...data, text: live.reasoning } });
    if (live.text !== '') events.push({ type: 'message.delta', ...base, data: { ...data, text: live.text } });
    return events;
  });
}
