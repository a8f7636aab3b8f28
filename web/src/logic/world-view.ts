import type { Chat, Message, World, WorldAgent } from '../../../core/protocol/entities.ts';
import type { StoredEvent, WorldEvent } from '../../../core/protocol/events.ts';
import type { WorldDetail } from '../../../core/protocol/requests.ts';
import { type LiveTurn, reduceLive } from './live-text.ts';
import { insertMessages, isEnded, type Room, reduceRoom } from './room.ts';

/** All that the page shows of one world. It follows from the log alone, so that a reload shows the same. */
export interface WorldView {
  readonly world: World;
  readonly agents: readonly WorldAgent[];
  readonly chats: readonly Chat[];
  /** By turn, of every chat of the world. */
  readonly live: ReadonlyMap<string, LiveTurn>;
  readonly room: Room | null;
  readonly isDeleted: boolean;
}

export function viewOf({ agents, chats, ...world }: WorldDetail): WorldView {
  return { world, agents, chats, live: new Map(), room: null, isDeleted: false };
}

const put = <T extends { id: string }>(list: readonly T[], item: T): readonly T[] =>
  list.some(({ id }) => id === item.id) ? list.map((old) => (old.id === item.id ? item : old)) : [...list, item];
const drop = <T extends { id: string }>(list: readonly T[], id: string): readonly T[] =>
  list.filter((item) => item.id !== id);

/** Pure; returns the same object where the event changes nothing that is shown. */
export function reduceView(view: WorldView, event: WorldEvent): WorldView {
  if (!('seq' in event)) {
    const { turnId } = event.data;
    const known = view.room?.chatId === event.chat ? view.room.turns.get(turnId) : undefined;
    if (known && isEnded(known)) return view;
    const before = view.live.get(turnId);
    const after = reduceLive(before, event);
    if (after === undefined || after === before) return view;
    return { ...view, live: new Map(view.live).set(turnId, after) };
  }
  const next = reduceStored(view, event);
  const { room } = next;
  if (!room || !('chat' in event) || event.chat !== room.chatId) return next;
  const reduced = reduceRoom(room, event);
  return reduced === room ? next : { ...next, room: reduced };
}

function reduceStored(view: WorldView, event: StoredEvent): WorldView {
  switch (event.type) {
    case 'world.updated':
      return { ...view, world: event.data.world };
    case 'world.deleted':
      return { ...view, isDeleted: true };
    case 'agent.created':
    case 'agent.updated':
      return { ...view, agents: put(view.agents, event.data.agent) };
    case 'agent.removed':
      return { ...view, agents: drop(view.agents, event.data.id) };
    case 'chat.created':
    case 'chat.updated':
      return { ...view, chats: put(view.chats, event.data.chat) };
    case 'chat.deleted':
      return { ...view, chats: drop(view.chats, event.data.id), live: withoutChat(view.live, event.data.id) };
    case 'message.created': {
      const { message } = event.data;
      const chats = withNewest(view.chats, message);
      // What is said is said: the stream's text must not stand beside the message, nor go away before it.
      const isAnswer = message.turnId !== undefined && message.sender.kind === 'agent';
      return { ...view, chats, live: isAnswer ? without(view.live, message.turnId ?? '') : view.live };
    }
    case 'turn.queued':
    case 'turn.done':
    case 'turn.failed':
    case 'turn.stopped':
      return { ...view, live: without(view.live, event.data.turn.id) };
    default:
      return view;
  }
}

function withNewest(chats: readonly Chat[], message: Message): readonly Chat[] {
  return chats.map((chat) =>
    chat.id === message.chatId && chat.lastSeq < message.seq
      ? { ...chat, lastSeq: message.seq, head: message.id, updatedAt: message.createdAt }
      : chat,
  );
}

/** A message that a call has answered, before its event comes. */
export function withPosted(view: WorldView, message: Message): WorldView {
  const { room } = view;
  const isHere = room?.chatId === message.chatId;
  return {
    ...view,
    chats: withNewest(view.chats, message),
    room: isHere ? { ...room, messages: insertMessages(room.messages, [message]) } : room,
  };
}

function without(live: ReadonlyMap<string, LiveTurn>, turnId: string): ReadonlyMap<string, LiveTurn> {
  if (!live.has(turnId)) return live;
  const rest = new Map(live);
  rest.delete(turnId);
  return rest;
}

function withoutChat(live: ReadonlyMap<string, LiveTurn>, chatId: string): ReadonlyMap<string, LiveTurn> {
  return new Map([...live].filter(([, turn]) => turn.chatId !== chatId));
}
