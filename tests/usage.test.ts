import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { OWNER } from '../core/index.ts';
import { openPrices } from '../core/models/prices.ts';
import type { TokenUsage } from '../core/ports.ts';
import { EMPTY_USAGE, type Usage, type WorldSettings } from '../core/protocol/entities.ts';
import { ModelError } from '../core/protocol/errors.ts';
import { type Calls, COUNTED, counting, MAX_TOKENS, openCountedRoom, tool } from './support/counted-room.ts';
import { manualClock } from './support/manual-clock.ts';
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

describe('what was used counts', () => {
  test('also of a turn that failed, and every retry is reserved anew', async () => {
    const clock = manualClock();
    let tries = 0;
    const breaking: Answer = async function* answer() {
      tries++;
      yield { type: 'text', text: 'half of an answer '.repeat(40) };
      throw new ModelError('provider_stream_broken', 'broken', { retryable: true });
    };
    await open(breaking, {}, { parley: { clock } });
    // Room for the first attempt with what it really used, not for a second one.
    await set({ chatBudget: { tokens: 900 } });
    await room.say('go');
    await room.event('turn.retrying');
    await clock.waiting(500);
    clock.advance(500);
    await room.idle();
    expect(tries).toBe(1);
    const [turn] = await turns();
    expect(turn).toMatchObject({ state: 'failed', error: { code: 'limit' }, usage: { calls: 1, estimated: true } });
    expect(turn?.usage.outputTokens).toBe(240);
    expect((await totals()).chat.spent.tokens).toBe((turn?.usage.inputTokens ?? 0) + 240);
  });

  test('nothing is charged for a call that the provider refused', async () => {
    const refusing: Answer = async function* answer() {
      yield* [];
      throw new ModelError('provider_auth', 'wrong key', { retryable: false });
    };
    await open(refusing);
    await say('go');
    expect((await totals()).chat.spent.tokens).toBe(0);
    expect((await turns())[0]?.usage).toEqual({ ...EMPTY_USAGE, calls: 1 });
  });

  test('also of a turn that was stopped', async () => {
    const hold = gate();
    const endless: Answer = async function* answer(_request, signal) {
      yield { type: 'text', text: 'begun' };
      hold.open();
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    await open(endless);
    await room.say('go');
    await hold.opened;
    await room.parley.stop(OWNER, room.world, room.chat);
    const [turn] = await turns();
    expect(turn).toMatchObject({ state: 'stopped', usage: { calls: 1, outputTokens: 2, estimated: true } });
    expect(turn?.usage.inputTokens).toBeGreaterThan(50);
    expect((await totals()).world.spent.tokens).toBe((turn?.usage.inputTokens ?? 0) + 2);
  });

  test('also of a turn that says nothing', async () => {
    await open(counting({ most: [] }, COUNTED, '<world>PASS</world>'));
    await say('go');
    expect((await turns())[0]).toMatchObject({ state: 'silent', usage: { inputTokens: 100 } });
    expect((await totals()).chat.spent.tokens).toBe(120);
  });

  test('also of a call that a shutdown cut off; the turn goes on and counts both', async () => {
    const hold = gate();
    let calls = 0;
    const cut: Answer = async function* answer(_request, signal) {
      calls++;
      yield { type: 'text', text: 'one two three' };
      if (calls === 1) {
        hold.open();
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      }
      yield { type: 'finish', stop: 'end', usage: COUNTED };
    };
    await open(cut);
    await room.say('go');
    await hold.opened;
    await room.reopen();
    await room.idle();
    const [turn] = await turns();
    expect(turn).toMatchObject({ state: 'done', usage: { calls: 2, outputTokens: 25, estimated: true } });
    expect((await totals()).chat.spent.tokens).toBe((turn?.usage.inputTokens ?? 0) + 25);
    expect((await room.messages()).at(-1)?.usage).toEqual(turn?.usage);
  });

  test('while its turn waits for a person, and only once when it goes on', async () => {
    const asking: Answer = async function* answer(request) {
      if (request.messages.at(-1)?.role === 'tool') yield { type: 'text', text: 'done' };
      else yield { type: 'toolCall', id: 'c', name: 'write', args: {}, raw: '{}' };
      yield { type: 'finish', stop: 'end', usage: COUNTED };
    };
    await open(asking, {}, { parley: { tools: [tool('write', 'write', async () => false)] } });
    await room.say('go');
    const { data } = await room.event('approval.requested');
    expect((await totals()).chat.spent.tokens).toBe(120);
    expect((await room.parley.usage(OWNER, room.world)).total).toMatchObject({ inputTokens: 100, calls: 1 });
    await room.reopen();
    await room.parley.answerApproval(OWNER, room.world, data.approval.id, { optionId: 'yes' });
    await room.event('turn.done');
    expect((await totals()).chat.spent.tokens).toBe(240);
    expect((await turns())[0]?.usage).toMatchObject({ inputTokens: 200, calls: 2 });
  });

  test('by the estimate, and marked, where the provider does not count', async () => {
    const calls: Calls = { most: [] };
    await open(counting(calls, null, 'twelve bytes'));
    await say('go');
    const usage = (await room.messages()).at(-1)?.usage;
    expect(usage).toMatchObject({ inputTokens: (calls.most[0] ?? 0) - MAX_TOKENS, outputTokens: 4, estimated: true });
    expect((await room.parley.usage(OWNER, room.world)).total).toEqual(usage);
  });
});

test('usage of messages, turns, agents, chats and world adds up to the token, whatever happens', async () => {
  const kinds = ['say', 'pass', 'tool', 'fail', 'uncounted'] as const;
  const plan: { kind: (typeof kinds)[number]; usage: TokenUsage }[] = [];
  const answer: Answer = async function* stream(request) {
    const { kind, usage } = plan[Math.min(calls++, plan.length - 1)] ?? { kind: 'say', usage: COUNTED };
    if (kind === 'fail') throw new ModelError('provider_nonsense', 'nonsense', { retryable: false });
    if (kind === 'tool' && request.messages.at(-1)?.role !== 'tool') {
      yield { type: 'toolCall', id: 'c', name: 'look', args: {}, raw: '{}' };
    } else yield { type: 'text', text: kind === 'pass' ? '<world>PASS</world>' : 'hello' };
    yield { type: 'finish', stop: 'end', ...(kind === 'uncounted' ? {} : { usage }) };
  };
  let calls = 0;
  await open(
    answer,
    { turnLimit: null },
    {
      agents: ['A', 'B', 'C'],
      parley: {
        tools: [tool('look', 'read', async () => false)],
        prices: openPrices({ test: { input: 3, cachedInput: 0.3, output: 15 } }),
      },
    },
  );
  const chats = [room.chat, (await room.parley.createChat(OWNER, room.world, {})).id];
  const tokens = fc.nat({ max: 100_000 });
  const used = fc.tuple(tokens, tokens).chain(([inputTokens, outputTokens]) =>
    fc.record({
      inputTokens: fc.constant(inputTokens),
      outputTokens: fc.constant(outputTokens),
      cachedTokens: fc.nat({ max: inputTokens }),
      reasoningTokens: fc.nat({ max: outputTokens }),
    }),
  );
  const step = fc.record({ kind: fc.constantFrom(...kinds), usage: used });
  const ask = fc.record({
    chat: fc.nat({ max: 1 }),
    text: fc.constantFrom('all', '@A hi', '@B and @C hi'),
    steps: fc.array(step, { minLength: 1, maxLength: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(ask, { minLength: 1, maxLength: 3 }), async (asks) => {
      for (const one of asks) {
        plan.splice(0, plan.length, ...one.steps);
        calls = 0;
        const chat = chats[one.chat] ?? room.chat;
        await room.parley.post(OWNER, room.world, chat, one.text);
        await room.parley.whenIdle(OWNER, room.world, chat, 20_000);
      }
      const usage = await room.parley.usage(OWNER, room.world);
      const all = (await Promise.all(chats.map((chat) => room.parley.turns(OWNER, room.world, chat)))).flat();
      const pages = chats.map((chat) => room.parley.messages(OWNER, room.world, chat, { limit: 500 }));
      const spoken = (await Promise.all(pages)).flatMap(({ messages }) => messages);
      // A silent turn has no message that could carry what it used.
      const silent = all.filter((turn) => turn.state === 'silent').map((turn) => turn.usage);
      expect(sum([...spoken.flatMap((message) => message.usage ?? []), ...silent])).toEqual(counts(usage.total));
      expect(sum(all.map((turn) => turn.usage))).toEqual(counts(usage.total));
      expect(sum(Object.values(usage.agents))).toEqual(counts(usage.total));
      expect(sum(Object.values(usage.chats))).toEqual(counts(usage.total));
      for (const chat of chats) {
        const { chat: account, world } = await room.parley.store.budgetTotals(chat);
        const own = usage.chats[chat] ?? EMPTY_USAGE;
        expect(account.spent.tokens).toBe(own.inputTokens + own.outputTokens);
        expect(account.spent.usd).toBeCloseTo(own.usd, 9);
        expect(world.spent.tokens).toBe(usage.total.inputTokens + usage.total.outputTokens);
        expect(world.spent.usd).toBeCloseTo(usage.total.usd, 9);
      }
    }),
    { numRuns: 15 },
  );
});

const counts = ({ inputTokens, outputTokens, cachedTokens, reasoningTokens, calls }: Usage) => ({
  ...{ inputTokens, outputTokens, cachedTokens, reasoningTokens, calls },
});
function sum(list: readonly Usage[]) {
  const total = { ...EMPTY_USAGE };
  for (const usage of list) {
    for (const key of ['inputTokens', 'outputTokens', 'cachedTokens', 'reasoningTokens', 'calls'] as const) {
      total[key] += usage[key];
    }
  }
  return counts(total);
}
