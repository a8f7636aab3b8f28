import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Message } from '../core/protocol/entities.ts';
import { LiveEvent, StoredEvent } from '../core/protocol/events.ts';
import { type RealServer, realServer } from '../server/testing/real-server.ts';
import { connectUser, type Frame } from '../server/testing/socket-user.ts';

let server: RealServer;
/** Two agents without pauses: one hands on, the other answers in several pieces. */
const SCRIPTS = {
  ada: '- when: {contains: plan}\n  say: "@Bo please write it. {{message}}"\n  chunkSize: 7\n- say: "Thank you."\n',
  bo: '- say: "Here is a text of some length, in several pieces: äöü 😀 😀 😀."\n  think: hm\n  chunkSize: 5\n',
};
const WORLD = 'live';
const W = `/api/v1/worlds/${WORLD}`;

beforeAll(async () => {
  server = await realServer();
  mkdirSync(join(server.dataDir, 'scripts'), { recursive: true });
  await server.call('POST', '/api/v1/worlds', { name: WORLD });
  for (const [name, script] of Object.entries(SCRIPTS)) {
    writeFileSync(join(server.dataDir, 'scripts', `${name}.yaml`), script);
    const made = await server.call('POST', `${W}/agents`, { name, provider: 'script', model: name });
    expect(made.status).toBe(201);
  }
});
afterAll(() => server.close());

const OWNER = { tokenId: 'owner', role: 'owner', name: 'Owner' } as const;
const newChat = async () => String((await server.call('POST', `${W}/chats`, {})).body['id']);
const connect = () => connectUser(server.url, server.parley.ownerToken);
const headOf = async () => (await server.parley.events.head(WORLD)) ?? 0;
const isEvent = (frame: Frame) => frame['at'] !== undefined;

it('a whole conversation arrives once and in order, in the shapes of the protocol, and its deltas make the messages', async () => {
  const chat = await newChat();
  const from = await headOf();
  const user = await connect();
  user.send({ type: 'subscribe', world: WORLD, after: from });
  user.send({ type: 'message', id: 'm1', world: WORLD, chat, content: '@ada plan a party' });
  expect(await user.until((f) => f.id === 'm1')).toMatchObject({
    type: 'ack',
    ok: true,
    message: { chatId: chat },
    turns: [{ agentId: 'ada' }],
  });
  expect(await server.parley.whenIdle(OWNER, WORLD, chat, 20_000)).toBe(true);
  const head = await headOf();
  await user.until((f) => f.seq === head);
  user.ws.close();

  const events = user.frames.filter(isEvent);
  const stored = events.filter((f) => f.seq !== undefined).map((f) => StoredEvent.parse(f));
  expect(stored.map((event) => event.seq)).toEqual(stored.map((_, n) => from + 1 + n));
  const said = stored.flatMap((event) => (event.type === 'message.created' ? [event.data.message] : []));
  const { messages } = (await server.call('GET', `${W}/chats/${chat}/messages`)).body as { messages: Message[] };
  expect(said).toEqual(messages);
  const texts = new Map<string, string>();
  for (const frame of events.filter((f) => f.seq === undefined)) {
    const event = LiveEvent.parse(frame);
    if (event.type === 'message.delta')
      texts.set(event.data.turnId, (texts.get(event.data.turnId) ?? '') + event.data.text);
  }
  const agents = messages.filter((message) => message.sender.kind === 'agent');
  expect(agents.map((message) => message.sender.id)).toEqual(['ada', 'bo', 'ada']);
  for (const message of agents) expect(texts.get(message.turnId ?? '')).toBe(message.content);
});

it('a client that is cut off again and again misses nothing and sees nothing twice', async () => {
  const chat = await newChat();
  const from = await headOf();
  let after = from;
  const seen: number[] = [];
  const talk = async (): Promise<void> => {
    for (let n = 0; n < 12; n += 1)
      await server.call('POST', `${W}/chats/${chat}/messages`, { content: `@bo hello ${n}` });
  };
  const talking = talk();
  for (let round = 0; round < 10; round += 1) {
    const user = await connect();
    user.send({ type: 'subscribe', id: 's', world: WORLD, after });
    await user.until((f) => f.type === 'subscribed');
    if (round > 4) await talking;
    if ((await headOf()) > after) await user.until((f) => f.seq === after + 1 && isEvent(f));
    // The blip: what was on its way is lost with the connection.
    user.ws.terminate();
    await user.closed;
    for (const frame of user.frames.filter(isEvent)) if (frame.seq !== undefined) seen.push(frame.seq);
    after = seen.at(-1) ?? after;
  }
  await talking;
  await server.parley.whenIdle(OWNER, WORLD, chat, 20_000);
  const head = await headOf();
  const last = await connect();
  last.send({ type: 'subscribe', world: WORLD, after });
  if (head > after) await last.until((f) => f.seq === head && isEvent(f));
  last.ws.terminate();
  for (const frame of last.frames.filter(isEvent)) if (frame.seq !== undefined) seen.push(frame.seq);
  expect(seen).toEqual(Array.from({ length: head - from }, (_, n) => from + 1 + n));
});

it('a message that was sent over a broken socket may be sent again over REST, and is stored once', async () => {
  const chat = await newChat();
  const user = await connect();
  user.send({ type: 'message', id: 'same', world: WORLD, chat, content: 'once only' });
  const ack = await user.until((f) => f.id === 'same');
  user.ws.terminate();
  const again = await server.call('POST', `${W}/chats/${chat}/messages`, { content: 'once only' }, { key: 'same' });
  expect((again.body['message'] as Message).id).toBe((ack['message'] as Message).id);
  const { messages } = (await server.call('GET', `${W}/chats/${chat}/messages`)).body as { messages: Message[] };
  expect(messages.filter((message) => message.content === 'once only')).toHaveLength(1);
});

it('fifty who talk at once are fifty rows, and connections that end leave nothing', async () => {
  const chat = await newChat();
  await server.call('POST', `${W}/chats/${chat}/pause`);
  const users = await Promise.all(Array.from({ length: 50 }, connect));
  for (const [n, user] of users.entries()) {
    user.send({ type: 'subscribe', world: WORLD });
    user.send({ type: 'message', id: `u${n}`, world: WORLD, chat, content: `from ${n}` });
  }
  await Promise.all(users.map((user, n) => user.until((f) => f.id === `u${n}`)));
  const { messages } = (await server.call('GET', `${W}/chats/${chat}/messages?limit=500`)).body as {
    messages: Message[];
  };
  expect(messages.map((message) => message.seq)).toEqual(Array.from({ length: 50 }, (_, n) => n + 1));
  for (const user of users) user.ws.close();
  await Promise.all(users.map((user) => user.closed));
  while (server.running.connections() > 0) await new Promise((resolve) => setImmediate(resolve));
});
