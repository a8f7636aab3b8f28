import type { Approval, Message, Turn } from '../../../core/protocol/entities.ts';
import type { StoredEvent } from '../../../core/protocol/events.ts';

/** One open chat: the newest messages as far as they are loaded, and its turns. */
export interface Room {
  readonly chatId: string;
  /** Ascending by seq, without a gap. */
  readonly messages: readonly Message[];
  /** What to ask for as `before` to get older ones; null at the start. */
  readonly olderBefore: number | null;
  readonly isLoaded: boolean;
  readonly turns: ReadonlyMap<string, Turn>;
  /** What waits for a person, oldest first, and the last few decisions. */
  readonly approvals: ReadonlyMap<string, Approval>;
}

/** Ended turns beyond this are forgotten, the oldest first; running ones never. */
const MAX_TURNS = 400;
/** Decisions that stay in view as one line each; what waits is never forgotten. */
const MAX_DECIDED = 3;
/** So many of the newest messages are looked at for a change of branch. */
const CHECKED = 50;

export const emptyRoom = (chatId: string): Room => ({
  chatId,
  messages: [],
  olderBefore: null,
  isLoaded: false,
  turns: new Map(),
  approvals: new Map(),
});

export const isEnded = (turn: Turn): boolean => !['queued', 'running', 'waiting'].includes(turn.state);

/** A message is put where its seq belongs, and replaces the one with the same id. */
export function insertMessages(messages: readonly Message[], added: readonly Message[]): readonly Message[] {
  if (added.length === 0) return messages;
  const first = added[0];
  const last = messages.at(-1);
  if (first && (!last || first.seq > last.seq) && isAscending(added)) return [...messages, ...added];
  const bySeq = new Map(messages.map((message) => [message.seq, message]));
  for (const message of added) bySeq.set(message.seq, message);
  return [...bySeq.values()].sort((a, b) => a.seq - b.seq);
}

const isAscending = (messages: readonly Message[]): boolean =>
  messages.every((message, index) => index === 0 || message.seq > (messages[index - 1]?.seq ?? 0));

/** The newest page; whatever events have brought meanwhile stays. */
export function withNewestPage(room: Room, page: { messages: readonly Message[]; next: number | null }): Room {
  return {
    ...room,
    messages: insertMessages(page.messages, room.messages),
    olderBefore: page.next,
    isLoaded: true,
  };
}

export function withOlderPage(room: Room, page: { messages: readonly Message[]; next: number | null }): Room {
  const first = room.messages[0]?.seq ?? Number.POSITIVE_INFINITY;
  const older = page.messages.filter((message) => message.seq < first);
  return { ...room, messages: [...older, ...room.messages], olderBefore: page.next };
}

/** A list that was read while events came in: of two states of one turn the later one counts. */
export function withTurns(room: Room, listed: readonly Turn[]): Room {
  const turns = new Map([...listed].reverse().map((turn) => [turn.id as string, turn]));
  for (const [id, turn] of room.turns) {
    const other = turns.get(id);
    if (!other || progress(turn) >= progress(other)) turns.set(id, turn);
  }
  return { ...room, turns: pruned(turns) };
}

/** A list of what waits, read while events came in: a decision that is known stays decided. */
export function withPending(room: Room, listed: readonly Approval[]): Room {
  const approvals = new Map(room.approvals);
  for (const approval of listed) {
    if (approval.chatId === room.chatId && !approvals.has(approval.id)) approvals.set(approval.id, approval);
  }
  const sorted = [...approvals].sort(([, a], [, b]) => a.createdAt.localeCompare(b.createdAt));
  return { ...room, approvals: new Map(sorted) };
}

/** One approval as it is now; the first decision is the last word. */
export function withApproval(room: Room, approval: Approval): Room {
  const known = room.approvals.get(approval.id);
  if (approval.chatId !== room.chatId || (known && known.status !== 'pending')) return room;
  const approvals = new Map(room.approvals).set(approval.id, approval);
  let over = [...approvals.values()].filter(({ status }) => status !== 'pending').length - MAX_DECIDED;
  for (const [id, { status }] of approvals) {
    if (over <= 0) break;
    if (status === 'pending' || id === approval.id) continue;
    approvals.delete(id);
    over -= 1;
  }
  return { ...room, approvals };
}

function progress(turn: Turn): number {
  return isEnded(turn) ? Number.POSITIVE_INFINITY : turn.attempt * 2 + (turn.state === 'queued' ? 0 : 1);
}

function pruned(turns: Map<string, Turn>): Map<string, Turn> {
  let over = turns.size - MAX_TURNS;
  for (const [id, turn] of turns) {
    if (over <= 0) break;
    if (!isEnded(turn)) continue;
    turns.delete(id);
    over -= 1;
  }
  return turns;
}

/**
 * Whether what is loaded is one branch that ends at the chat's head. Where somebody has edited a message, answered
 * anew or chosen another branch it is not, and the room is to be read again.
 */
export function isOneBranch(room: Room, head: string | null): boolean {
  const tail = room.messages.slice(-CHECKED);
  const isChain = tail.every((message, index) => index === 0 || message.parentId === tail[index - 1]?.id);
  return isChain && (tail.at(-1)?.id ?? null) === head;
}

/** An event of this chat. Whatever brings a message or a turn has it whole. */
export function reduceRoom(room: Room, event: StoredEvent): Room {
  const { data } = event;
  if (event.type === 'message.deleted') {
    const messages = room.messages.map((one) => (one.id === event.data.id ? { ...one, content: '' } : one));
    return { ...room, messages };
  }
  if ('message' in data) return { ...room, messages: insertMessages(room.messages, [data.message]) };
  if ('approval' in data) return withApproval(room, data.approval);
  if (!('turn' in data)) return room;
  const turns = new Map(room.turns);
  // A turn that moves on goes to the end, so that the newest is last.
  turns.delete(data.turn.id);
  turns.set(data.turn.id, data.turn);
  return { ...room, turns: pruned(turns) };
}
