import type { Message, Turn } from '../../../core/protocol/entities.ts';

/**
 * Ids of limit notices whose way on is still open: nobody has spoken since, no later notice stands for the same chat,
 * and nothing that the limit held back has been taken up again.
 */
export function openLimits(messages: readonly Message[], turns: Iterable<Turn>): ReadonlySet<string> {
  const open = new Set<string>();
  let oldest = Number.POSITIVE_INFINITY;
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index];
    if (!message || message.sender.kind === 'human') break;
    if (message.notice?.kind !== 'limit') continue;
    open.add(message.id);
    oldest = message.seq;
  }
  if (open.size === 0) return open;
  const notices = messages.filter((message) => open.has(message.id) && message.seq >= oldest);
  for (const turn of turns) {
    for (const notice of notices) {
      if (turn.trigger.seq < notice.seq && turn.queuedAt > notice.createdAt) open.delete(notice.id);
    }
  }
  return open;
}
