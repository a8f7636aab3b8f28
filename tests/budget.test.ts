import { afterEach, describe, expect, test } from 'vitest';
import { OWNER } from '../core/index.ts';
import { openPrices } from '../core/models/prices.ts';
import { EMPTY_USAGE, type WorldSettings } from '../core/protocol/entities.ts';
import { promptTokens } from '../core/world/budget.ts';
import { type Calls, COUNTED, counting, MAX_TOKENS, openCountedRoom, tool } from './support/counted-room.ts';
import { type Answer, gate, type Room } from './support/room.ts';

let room: Room;
afterEach(async () => {
  await room.close();
});
async function open(...options: Parameters<typeof openCountedRoom>): Promise<void> {
  room = await openCountedRoom(...options);
}
const totals = () => room.parley.store.budgetTotals(room.chat);
const turns = () => room.parley.turns(OWNER, room.world, room.chat);
const set = (patch: Partial<WorldSettings>) => room.parley.patchWorld(OWNER, room.world, patch);
async function say(text: string) {
  await room.say(text);
  await room.idle();
}
const reached = () => room.stored().flatMap((event) => (event.type === 'limit.reached' ? [event.data] : []));

describe('a chat budget of tokens', () => {
  test('keeps a call from being made that could go beyond it, and says so once', async () => {
    const calls: Calls = { most: [] };
    await open(counting(calls));
    await say('one');
    expect((await totals()).chat.spent).toEqual({ tokens: 120, usd: 0 });
    // The next prompt is longer, so that its most is above this one's.
    const max = 120 + (calls.most[0] ?? 0);
    await set({ chatBudget: { tokens: max } });
    await say('two');
    expect(calls.most).toHaveLength(1);
    const [turn] = await turns();
    expect(turn).toMatchObject({ state: 'failed', error: { code: 'limit' }, usage: EMPTY_USAGE });
    expect(reached()).toMatchObject([{ limit: 'chatBudget', used: 120, max, unit: 'tokens', agentId: 'a' }]);
    const last = (await room.messages()).at(-1);
    expect(last).toMatchObject({
      sender: { kind: 'system' },
      notice: { kind: 'limit', limit: 'chatBudget', used: 120, max, action: 'continue' },
    });
    expect(last?.content).toContain(`120 tokens of ${max} tokens`);
  });

  test('is granted again by continue, which goes on with what was held, also after a restart', async () => {
    const calls: Calls = { most: [] };
    await open(counting(calls), { chatBudget: { tokens: 1000 } });
    for (let text = 0; reached().length === 0 && text < 20; text++) await say(`text ${text}`);
    const made = calls.most.length;
    expect(reached()).toHaveLength(1);
    await room.reopen();
    await room.parley.continueChat(OWNER, room.world, room.chat);
    await room.idle();
    expect(calls.most).toHaveLength(made + 1);
    expect((await turns())[0]?.state).toBe('done');
    await room.reopen();
    expect((await totals()).chat).toEqual({
      spent: { tokens: 120 * (made + 1), usd: 0 },
      granted: { tokens: 1000, usd: 0 },
    });
  });

  test('is not reset by a person, and not granted by a message', async () => {
    const calls: Calls = { most: [] };
    await open(counting(calls), { chatBudget: { tokens: 10 } });
    await say('one');
    await say('two');
    expect(calls.most).toEqual([]);
    // Each person who asks is told, and only what was asked last is held.
    expect(reached()).toHaveLength(2);
    expect((await totals()).chat.granted.tokens).toBe(0);
    await set({ chatBudget: { tokens: 100_000 } });
    const { turns: held } = await room.parley.continueChat(OWNER, room.world, room.chat);
    await room.idle();
    expect(held).toHaveLength(1);
    expect(calls.most).toHaveLength(1);
    // It was raised by the owner: there was nothing to grant.
    expect((await totals()).chat.granted.tokens).toBe(0);
  });

  test('waits for continue also over a message that wakes nobody', async () => {
    const calls: Calls = { most: [] };
    await open(counting(calls), { chatBudget: { tokens: 400 } }, { agents: ['A', 'B'] });
    await set({ chatBudget: { tokens: 10 } });
    await say('@A one');
    await say('<world>STOP</world> wait a moment');
    await set({ chatBudget: null });
    await room.parley.continueChat(OWNER, room.world, room.chat);
    await room.idle();
    expect(calls.most).toHaveLength(1);
  });

  test('counts a finished call once while its turn goes on', async () => {
    const calls: Calls = { most: [] };
    const looking: Answer = async function* answer(request) {
      calls.most.push(promptTokens(request) + request.maxTokens);
      const isFirst = request.messages.at(-1)?.role !== 'tool';
      if (isFirst) yield { type: 'toolCall', id: 'c', name: 'look', args: {}, raw: '{}' };
      else yield { type: 'text', text: 'seen' };
      yield { type: 'finish', stop: isFirst ? 'tool' : 'end', usage: COUNTED };
    };
    await open(looking, {}, { parley: { tools: [tool('look', 'read', async () => false)] } });
    await say('go');
    // The same again in a chat of its own, with just room for what the second call can need beside the first.
    const { id } = await room.parley.createChat(OWNER, room.world, {});
    const ask = async () => {
      await room.parley.post(OWNER, room.world, id, 'go');
      await room.parley.whenIdle(OWNER, room.world, id, 20_000);
      return (await room.parley.turns(OWNER, room.world, id))[0]?.state;
    };
    await set({ chatBudget: { tokens: 120 + (calls.most[1] ?? 0) } });
    expect(await ask()).toBe('done');
    expect(calls.most).toHaveLength(4);
    expect(calls.most[3]).toBe(calls.most[1]);
  });

  test('twenty agents at once never go beyond it', async () => {
    const agents = Array.from({ length: 20 }, (_, index) => `agent${index}`);
    const calls: Calls = { most: [] };
    await open(counting(calls), { chatBudget: { tokens: 5000 } }, { agents });
    await say('all of you');
    expect(calls.most.length).toBeGreaterThan(0);
    expect(calls.most.length).toBeLessThan(20);
    expect(calls.most.reduce((sum, most) => sum + most, 0)).toBeLessThanOrEqual(5000 + 20 * 120);
    const states = (await turns()).map((turn) => turn.state);
    expect(states.filter((state) => state === 'done')).toHaveLength(calls.most.length);
    expect(states.filter((state) => state === 'failed')).toHaveLength(20 - calls.most.length);
    expect(reached()).toHaveLength(1);
    expect((await totals()).chat.spent.tokens).toBe(120 * calls.most.length);
    const before = calls.most.length;
    const { turns: again } = await room.parley.continueChat(OWNER, room.world, room.chat);
    await room.idle();
    expect(again).toHaveLength(20 - before);
    expect(calls.most.length).toBeGreaterThan(before);
  });

  test('what calls in flight have reserved is not there for others', async () => {
    const calls: Calls = { most: [] };
    let hold = gate();
    const slow: Answer = async function* answer(request) {
      calls.most.push(promptTokens(request) + request.maxTokens);
      await hold.opened;
      yield { type: 'text', text: 'done' };
      yield { type: 'finish', stop: 'end', usage: COUNTED };
    };
    await open(slow, {}, { agents: Array.from({ length: 20 }, (_, index) => `agent${index}`) });
    hold.open();
    await say('@agent0 how much is it?');
    hold = gate();
    const room4 = 4 * ((calls.most[0] ?? 0) + 60);
    await set({ chatBudget: { tokens: 120 + room4 } });
    await room.say('everyone');
    const failures = () => room.stored().filter((event) => event.type === 'turn.failed').length;
    while (failures() + calls.most.length - 1 < 20) await new Promise((resolve) => setImmediate(resolve));
    const inFlight = calls.most.slice(1);
    expect(inFlight.length).toBeGreaterThanOrEqual(3);
    expect(inFlight.reduce((sum, most) => sum + most, 0)).toBeLessThanOrEqual(room4);
    expect(reached()).toHaveLength(1);
    hold.open();
    await room.idle();
    expect((await totals()).chat.spent.tokens).toBe(120 * calls.most.length);
  });
});

describe("the world's budget", () => {
  test('counts all its chats together, and continue in one of them raises it for all', async () => {
    const calls: Calls = { most: [] };
    await open(counting(calls));
    await say('learn');
    const other = (await room.parley.createChat(OWNER, room.world, {})).id;
    const most = (calls.most[0] ?? 0) + 5;
    await set({ budget: { tokens: 240 + most - 30 } });
    const sayThere = async () => {
      await room.parley.post(OWNER, room.world, other, 'there');
      await room.parley.whenIdle(OWNER, room.world, other, 20_000);
    };
    await sayThere();
    expect(calls.most).toHaveLength(2);
    await sayThere();
    expect(calls.most).toHaveLength(2);
    expect(reached()).toMatchObject([{ limit: 'budget', used: 240 }]);
    await room.parley.continueChat(OWNER, room.world, other);
    await room.parley.whenIdle(OWNER, room.world, other, 20_000);
    expect(calls.most).toHaveLength(3);
    await say('here');
    expect(calls.most).toHaveLength(4);
    expect((await totals()).world).toMatchObject({
      spent: { tokens: 480 },
      granted: { tokens: 240 + most - 30 },
    });
    expect((await totals()).chat.spent.tokens).toBe(240);
  });
});

describe('a budget of money', () => {
  const prices = openPrices({ test: { input: 10, cachedInput: 1, output: 100 } });
  // (100 - 10) × 10 + 10 × 1 + 20 × 100, in millionths.
  const USD = 0.00291;

  test('refuses a model whose price nobody knows, before the call', async () => {
    const calls: Calls = { most: [] };
    await open(counting(calls), { budget: { usd: 5 } });
    await say('go');
    expect(calls.most).toEqual([]);
    expect((await turns())[0]).toMatchObject({ state: 'failed', error: { code: 'price_unknown' } });
    expect((await room.texts()).at(-1)).toContain('prices in config.yaml');
  });

  test('without one, a model without a price works and no money is claimed', async () => {
    await open(counting({ most: [] }), { budget: { tokens: 100_000 } });
    await say('go');
    expect((await room.messages()).at(-1)?.usage).toEqual({ ...COUNTED, usd: 0, calls: 1 });
  });

  test('is reserved at the most, settled by what was used, and adds up', async () => {
    const calls: Calls = { most: [] };
    await open(counting(calls), { chatBudget: { usd: 1 } }, { parley: { prices } });
    await say('one');
    const reply = (await room.messages()).at(-1);
    expect(reply?.usage?.usd).toBeCloseTo(USD, 12);
    expect((await totals()).chat.spent.usd).toBeCloseTo(USD, 12);
    const most = ((calls.most[0] ?? 0) - MAX_TOKENS) * 10 + MAX_TOKENS * 100;
    await set({ chatBudget: { usd: USD + most / 1e6 } });
    await say('two');
    expect(calls.most).toHaveLength(1);
    expect(reached()).toMatchObject([{ limit: 'chatBudget', unit: 'usd' }]);
    expect(reached()[0]?.used).toBeCloseTo(USD, 12);
    await room.parley.continueChat(OWNER, room.world, room.chat);
    await room.idle();
    expect(calls.most).toHaveLength(2);
    expect((await room.parley.usage(OWNER, room.world)).total.usd).toBeCloseTo(2 * USD, 12);
  });

  test('never stops what costs nothing', async () => {
    const calls: Calls = { most: [] };
    const free = openPrices({ test: { input: 0, output: 0 } });
    await open(counting(calls), { budget: { usd: 0.000001 } }, { parley: { prices: free } });
    await say('one');
    expect(calls.most).toHaveLength(1);
  });
});
