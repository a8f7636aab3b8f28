import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { StoredEvent } from '../core/protocol/events.ts';
import { connectUser, type Frame, type SocketUser } from '../server/testing/socket-user.ts';
import { type Asked, type AskingServer, askingServer } from './support/asking-server.ts';

let server: AskingServer;
let world: string;
const users: SocketUser[] = [];
beforeAll(async () => {
  server = await askingServer();
  world = await server.newWorld('Home');
  await server.newWorld('Elsewhere');
});
afterAll(() => server.close());
beforeEach(() => {
  server.stamps.length = 0;
});
afterEach(() => {
  for (const { ws } of users.splice(0)) ws.terminate();
});

async function connect(token = server.parley.ownerToken): Promise<SocketUser> {
  const user = await connectUser(server.url, token);
  users.push(user);
  return user;
}
const stamp = (what: string) => [{ tool: 'stamp', args: { what } }];
const frameOf = (asked: Asked, id: string, more: Record<string, unknown>) => ({
  ...{ type: 'answer', id, world: asked.world, approval: asked.approval.id },
  ...more,
});
const ackOf = (user: SocketUser, id: string) => user.until((frame) => frame.type === 'ack' && frame['id'] === id);
const isStored = (frame: Frame) => frame.seq !== undefined && frame['at'] !== undefined;

describe('an answer over a socket', () => {
  it('is acknowledged with the approval; a later one with the final state, and not ok', async () => {
    const asked = await server.ask(world, stamp('socket'));
    const [ada, mira] = [await connect(), await connect(server.member)];
    ada.send(frameOf(asked, 'a1', { optionId: 'yes', chatId: asked.chat }));
    const ack = await ackOf(ada, 'a1');
    expect(ack).toMatchObject({ ok: true, accepted: true, approval: { status: 'answered' } });
    mira.send(frameOf(asked, 'a1', { optionId: 'no' }));
    expect(await ackOf(mira, 'a1')).toEqual({
      ...{ type: 'ack', id: 'a1', ok: false, error: 'conflict', message: expect.any(String) },
      ...{ accepted: false, reason: expect.any(String), approval: ack['approval'] },
    });
    await server.idle(asked);
    expect(server.stamps).toEqual([{ what: 'socket' }]);
  });

  it('sent again, over a socket or REST, with its id gets the first answer; another body is refused', async () => {
    const asked = await server.ask(world, stamp('again'));
    const ada = await connect();
    ada.send(frameOf(asked, 'same', { optionId: 'yes' }));
    const { approval } = await ackOf(ada, 'same');
    ada.ws.terminate();
    await ada.closed;
    const back = await connect();
    back.send(frameOf(asked, 'same', { optionId: 'yes' }));
    expect(await ackOf(back, 'same')).toEqual({ type: 'ack', id: 'same', ok: true, accepted: true, approval });
    const rest = await server.answer(asked, { optionId: 'yes' }, { key: 'same' });
    expect({ status: rest.status, body: rest.body }).toEqual({ status: 200, body: { accepted: true, approval } });
    const other = await connect();
    other.send(frameOf(asked, 'same', { optionId: 'no' }));
    expect(await ackOf(other, 'same')).toMatchObject({ ok: false, error: 'idempotency_mismatch' });
    await server.idle(asked);
    expect(server.stamps).toEqual([{ what: 'again' }]);
  });

  it('that is not one is told why, and the approval waits on', async () => {
    const asked = await server.ask(world, stamp('waits'));
    const other = await server.ask('elsewhere', stamp('there'));
    const [ada, vic] = [await connect(), await connect(server.viewer)];
    const yes = { optionId: 'yes' };
    const cases: [SocketUser, string, Record<string, unknown>][] = [
      [ada, 'invalid', frameOf(asked, 'c0', { optionId: 'maybe' })],
      [ada, 'invalid', frameOf(asked, 'c1', { ...yes, chatId: other.chat })],
      [ada, 'invalid', frameOf(asked, 'c2', { ...yes, args: {} })],
      [ada, 'invalid', frameOf(asked, 'c3', { ...yes, remember: 'for ever' })],
      [ada, 'not_found', frameOf(asked, 'c4', { ...yes, world: 'elsewhere' })],
      [ada, 'not_found', frameOf(asked, 'c5', { ...yes, approval: other.approval.id })],
      [vic, 'forbidden', frameOf(asked, 'c6', yes)],
    ];
    for (const [user, error, frame] of cases) {
      user.send(frame);
      expect(await ackOf(user, String(frame['id']))).toMatchObject({ ok: false, error });
    }
    ada.send({ ...frameOf(asked, '', yes), id: undefined });
    expect(await ada.until((frame) => frame.type === 'error' && String(frame['message']).includes('id'))).toBeDefined();
    expect((await server.read(asked)).status).toBe('pending');
    expect((await server.read(other)).status).toBe('pending');
    expect(server.stamps).toEqual([]);
    await server.answer(asked, { optionId: 'no' });
    await server.answer(other, { optionId: 'no' });
  });

  it('of ten sockets, and of ten calls beside them, is accepted once', async () => {
    const asked = await server.ask(world, stamp('race'));
    const sockets = await Promise.all(Array.from({ length: 10 }, () => connect()));
    const rest = sockets.map((_, n) => server.answer(asked, { optionId: n % 2 ? 'yes' : 'no' }));
    for (const [n, user] of sockets.entries()) user.send(frameOf(asked, `s${n}`, { optionId: n % 2 ? 'no' : 'yes' }));
    const acks = await Promise.all(sockets.map((user, n) => ackOf(user, `s${n}`)));
    const given = [...acks, ...(await Promise.all(rest)).map(({ body }) => body)];
    expect(given.filter((one) => one['accepted'] === true)).toHaveLength(1);
    expect(new Set(given.map((one) => JSON.stringify(one['approval']))).size).toBe(1);
    await server.idle(asked);
    const { resolution } = await server.read(asked);
    expect(server.stamps).toEqual(resolution?.optionId === 'yes' ? [{ what: 'race' }] : []);
  });
});

it('two clients, one of which was away, see the same events of a decision, each once and in order', async () => {
  const from = (await server.parley.events.head(world)) ?? 0;
  const [ada, vic] = [await connect(), await connect(server.viewer)];
  ada.send({ type: 'subscribe', world, after: from });
  vic.send({ type: 'subscribe', world, after: from });
  const asked = await server.ask(world, stamp('shown to all'));
  for (const user of [ada, vic]) await user.until((frame) => frame.type === 'approval.requested');
  vic.ws.terminate();
  await vic.closed;
  const seen = vic.frames.filter(isStored);
  ada.send(frameOf(asked, 'yes', { optionId: 'yes' }));
  expect(await ackOf(ada, 'yes')).toMatchObject({ accepted: true });
  await server.idle(asked);
  const head = (await server.parley.events.head(world)) ?? 0;
  const back = await connect(server.viewer);
  back.send({ type: 'subscribe', world, after: seen.at(-1)?.seq ?? from });
  for (const user of [ada, back]) await user.until((frame) => frame.seq === head && isStored(frame));

  const events = ada.frames.filter(isStored).map((frame) => StoredEvent.parse(frame));
  expect([...seen, ...back.frames.filter(isStored)]).toEqual(ada.frames.filter(isStored));
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, n) => from + 1 + n));
  const about = events.flatMap((event) => (event.type.startsWith('approval.') ? [event] : []));
  expect(about.map(({ type, data }) => [type, (data as { approval: { status: string } }).approval.status])).toEqual([
    ['approval.requested', 'pending'],
    ['approval.answered', 'answered'],
  ]);
  const states = events.flatMap(({ type }) => (/^(turn|tool)\./.test(type) ? [type] : []));
  expect(states).toEqual([
    ...['turn.queued', 'turn.started', 'turn.waiting'],
    ...['turn.queued', 'turn.started', 'tool.started', 'tool.finished', 'turn.done'],
  ]);
});
