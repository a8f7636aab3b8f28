import type { Message } from '../../../core/protocol/entities.ts';
import type { LiveTurn } from './live-text.ts';
import type { Room } from './room.ts';

export interface MessageRow {
  readonly kind: 'message';
  readonly key: string;
  readonly message: Message;
  /** The day in the reader's time zone, and whether the row before is of another. */
  readonly day: string;
  readonly startsDay: boolean;
}
export type Row = MessageRow | { readonly kind: 'live'; readonly key: string; readonly turnId: string };

/** An answer keeps the key of its stream, so that it stays where it is when it is finished. */
const keyOf = (message: Message): string =>
  message.sender.kind === 'agent' && message.turnId !== undefined ? `turn:${message.turnId}` : message.id;

const dayOf = (iso: string): string => new Date(iso).toDateString();

/** Rows of messages alone. A row of `before` whose message did not change stays the same object. */
export function messageRows(messages: readonly Message[], before: readonly MessageRow[] = []): readonly MessageRow[] {
  // Messages come at the end, or a page of older ones at the beginning.
  const isAppended = before[0]?.message === messages[0];
  const offset = isAppended ? 0 : messages.length - before.length;
  let day = '';
  return messages.map((message, index) => {
    const known = before[index - offset];
    const isSame = known?.message === message;
    const own = isSame ? known.day : dayOf(message.createdAt);
    const startsDay = own !== day;
    day = own;
    if (isSame && known.startsDay === startsDay) return known;
    return { kind: 'message', key: keyOf(message), message, startsDay, day: own };
  });
}

/** Turns of the open chat that have begun to speak, in the order in which they began. */
export function liveTurns(room: Room, live: ReadonlyMap<string, LiveTurn>): readonly LiveTurn[] {
  const said = new Set(room.messages.slice(-200).map((message) => message.turnId));
  return [...live.values()].filter(
    (turn) =>
      turn.chatId === room.chatId && (turn.text !== '' || turn.reasoning !== '') && !said.has(turn.turnId as never),
  );
}

export const liveRows = (turnIds: readonly string[]): readonly Row[] =>
  turnIds.map((turnId) => ({ kind: 'live', key: `turn:${turnId}`, turnId }));
