import type { Message } from '../../../core/protocol/entities.ts';
import type { LiveTurn } from './live-text.ts';
import type { Room } from './room.ts';

export type Row =
  | { readonly kind: 'message'; readonly key: string; readonly message: Message; readonly startsDay: boolean }
  | { readonly kind: 'live'; readonly key: string; readonly turnId: string };

/** An answer keeps the key of its stream, so that it stays where it is when it is finished. */
const keyOf = (message: Message): string =>
  message.sender.kind === 'agent' && message.turnId !== undefined ? `turn:${message.turnId}` : message.id;

const dayOf = (iso: string): string => new Date(iso).toDateString();

/** Rows of messages alone; made anew only when the messages change. */
export function messageRows(messages: readonly Message[]): readonly Row[] {
  let day = '';
  return messages.map((message) => {
    const own = dayOf(message.createdAt);
    const startsDay = own !== day;
    day = own;
    return { kind: 'message', key: keyOf(message), message, startsDay };
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
