import { expect, test } from 'vitest';
import {
  type Approval,
  type Chat,
  EMPTY_ROUTING,
  EMPTY_USAGE,
  type Message,
  type Turn,
  type TurnState,
} from '../core/protocol/entities.ts';
import { AppError } from '../core/protocol/errors.ts';
import { type Connection, createClient } from './client.ts';
import { followChat } from './follow.ts';
import type { RoomView } from './room-view.ts';

const at = '2026-01-01T00:00:00.000Z';
const never = new AbortController().signal;

function message(seq: number, kind = 'agent'): Message {
  const sender = { kind, id: kind, name: kind };
  const rest = { parentId: null, routing: EMPTY_ROUTING, status: 'complete', createdAt: at };
  return { id: `m${seq}`, worldId: 'w', chatId: 'c', seq, sender, content: `#${seq}`, ...rest } as Message;
}

function turn(state: TurnState): Turn {
  const trigger = { messageId: 'm1', seq: 1, reason: 'address' };
  const times = { queuedAt: at, startedAt: null, endedAt: null };
  return {
    id: 't1',
    worldId: 'w',
    chatId: 'c',
    agentId: 'a',
    state,
    trigger,
    attempt: 1,
    usage: EMPTY_USAGE,
    ...times,
  } as Turn;
}

/** A server with one chat, whose event streams the test opens, feeds and breaks. */
function fakeServer() {
  const state = {
    messages: [] as Message[],
    turns: [] as Turn[],
    approvals: [] as Approval[],
    paused: false,
    refuseStream: null as AppError | null,
  };
  const streams: ReadableStreamDefaultController<Uint8Array>[] = [];
  const asked: (string | null)[] = [];
  let opened = () => {};
  const connection: Connection = {
    url: 'fake',
    close: async () => {},
    async request(path, init) {
      const { pathname, searchParams } = new URL(path, 'http://fake.invalid');
      if (pathname.endsWith('/events/stream')) {
        asked.push(new Headers(init.headers).get('last-event-id'));
        if (state.refuseStream)
          return Response.json(state.refuseStream.toBody(), { status: state.refuseStream.status });
        const body = new ReadableStream<Uint8Array>({ start: (controller) => void streams.push(controller) });
        opened();
        return new Response(body);
      }
      if (pathname.endsWith('/messages') && init.method === 'POST') {
        const posted = message(state.messages.length + 1, 'human');
        state.messages.push(posted);
        emit(0, { type: 'message.created', seq: 90, world: 'w', chat: 'c', at, data: { message: posted } });
        return Response.json({ message: posted, routing: EMPTY_ROUTING, turns: [{ id: 't1', agentId: 'a' }] });
      }
      if (pathname.endsWith('/messages')) {
        const after = Number(searchParams.get('after'));
        return Response.json({ messages: state.messages.filter(({ seq }) => seq > after), next: null });
      }
      if (pathname.endsWith('/approvals')) return Response.json({ approvals: state.approvals });
      if (pathname.endsWith('/turns')) return Response.json({ turns: state.turns });
      return Response.json({ id: 'c', paused: state.paused } as Partial<Chat>);
    },
  };
  const emit = (stream: number, event: Record<string, unknown>) =>
    streams[stream]?.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`));
  const nextStream = () =>
    new Promise<void>((resolve) => {
      opened = resolve;
    });
  return { state, streams, asked, connection, emit, nextStream };
}

function recorder() {
  const seen: string[] = [];
  const view: RoomView = {
    message: ({ content }) => void seen.push(content),
    delta: ({ text }) => void seen.push(text),
    turn: ({ state }) => void seen.push(state),
    retrying() {},
    tool() {},
    settled: () => void seen.push('settled'),
  };
  return { seen, view };
}

const created = (seq: number, of: Message) => ({
  type: 'message.created',
  seq,
  world: 'w',
  chat: 'c',
  at,
  data: { message: of },
});
const ended = (seq: number) => ({ type: 'turn.done', seq, world: 'w', chat: 'c', at, data: { turn: turn('done') } });

test('shows each message once and in order, and not the person’s own', async () => {
  const { state, connection, emit } = fakeServer();
  const { seen, view } = recorder();
  const follower = await followChat(createClient(connection), { world: 'w', chat: 'c', afterSeq: 0 }, view);
  state.turns = [turn('running')];
  await follower.post('hi');
  const settled = follower.settle(never);
  state.messages.push(message(2), message(3));
  emit(0, created(92, message(3)));
  emit(0, created(91, message(2)));
  state.turns = [turn('done')];
  emit(0, ended(93));
  await settled;
  await follower.close();
  expect(seen).toEqual(['#2', '#3', 'done', 'settled']);
});

test('misses nothing where the stream breaks, and asks for what came since', async () => {
  const { state, streams, asked, connection, emit, nextStream } = fakeServer();
  const { seen, view } = recorder();
  const follower = await followChat(createClient(connection), { world: 'w', chat: 'c', afterSeq: 0 }, view);
  state.turns = [turn('running')];
  await follower.post('hi');
  const settled = follower.settle(never);
  const again = nextStream();
  streams[0]?.error(new Error('connection reset'));
  await again;
  state.messages.push(message(2));
  state.turns = [turn('done')];
  emit(1, ended(92));
  await settled;
  await follower.close();
  expect(asked).toEqual([null, '90']);
  expect(seen).toEqual(['done', '#2', 'settled']);
});

test('works without a stream', async () => {
  const { state, connection } = fakeServer();
  state.refuseStream = new AppError('too_many', 'too many streams');
  const { seen, view } = recorder();
  const follower = await followChat(createClient(connection), { world: 'w', chat: 'c', afterSeq: 0 }, view);
  await follower.post('hi');
  state.messages.push(message(2));
  await follower.settle(never);
  await follower.close();
  expect(seen).toEqual(['#2', 'settled']);
});

test('ends with the server’s words where the chat may not be read', async () => {
  const { state, connection } = fakeServer();
  state.refuseStream = new AppError('forbidden', 'not yours');
  const { view } = recorder();
  const follower = await followChat(createClient(connection), { world: 'w', chat: 'c', afterSeq: 0 }, view);
  await expect(follower.settle(never)).rejects.toThrow('not yours');
  await follower.close();
});

test('does not wait for what a pause holds back', async () => {
  const { state, connection } = fakeServer();
  const { seen, view } = recorder();
  const follower = await followChat(createClient(connection), { world: 'w', chat: 'c', afterSeq: 0 }, view);
  state.turns = [turn('queued')];
  state.paused = true;
  await follower.settle(never);
  await follower.close();
  expect(seen).toEqual(['settled']);
});

test('does not wait for what waits for a person, nor for what stands behind it, and tells of the approval', async () => {
  const { state, connection } = fakeServer();
  state.refuseStream = new AppError('too_many', 'too many streams');
  const { seen, view } = recorder();
  const asked: string[] = [];
  const at = { world: 'w', chat: 'c', afterSeq: 0 };
  const follower = await followChat(createClient(connection), at, view, ({ id }) => void asked.push(id));
  state.messages = [message(1)];
  state.turns = [turn('waiting'), { ...turn('queued'), id: 't2' } as Turn];
  state.approvals = [
    { id: 'a1', chatId: 'c' },
    { id: 'a2', chatId: 'another' },
  ] as Approval[];
  await follower.settle(never);
  await follower.close();
  expect(asked).toEqual(['a1']);
  expect(seen).toEqual(['#1', 'settled']);
});

test('goes on waiting for another agent’s turn while one waits for a person', async () => {
  const { state, connection, emit } = fakeServer();
  const { seen, view } = recorder();
  const follower = await followChat(createClient(connection), { world: 'w', chat: 'c', afterSeq: 0 }, view);
  const other = { ...turn('running'), id: 't2', agentId: 'b' } as Turn;
  state.turns = [turn('waiting'), other];
  await follower.post('hi');
  const settled = follower.settle(never);
  state.messages.push(message(2));
  state.turns = [turn('waiting'), { ...other, state: 'done' }];
  emit(0, { ...ended(91), data: { turn: turn('waiting') }, type: 'turn.waiting' });
  await settled;
  await follower.close();
  expect(seen.at(-1)).toBe('settled');
  expect(seen).toContain('#2');
});
