import { describe, expect, test } from 'vitest';
import { type BudgetTotals, freshLedger, type HeldWake, type ModelRequest } from '../ports.ts';
import type { AgentId, MessageId } from '../protocol/ids.ts';
import {
  type Breach,
  breachText,
  budgetKinds,
  costOf,
  findBreach,
  grantOf,
  holdAtBudget,
  MAX_HELD,
  mostOf,
  promptTokens,
} from './budget.ts';

const nothing = () => ({ tokens: 0, usd: 0 });
const totals = (chat = nothing(), world = nothing()): BudgetTotals => ({
  chat: { spent: chat, granted: nothing() },
  world: { spent: world, granted: nothing() },
});
const request = (more: Partial<ModelRequest> = {}): ModelRequest => ({
  ...{ model: 'm', system: '', messages: [], tools: [], maxTokens: 10 },
  scene: { agent: { id: 'a', name: 'A' }, from: 'x', text: 'x', turn: 1, agents: [] },
  ...more,
});
const used = (inputTokens: number, outputTokens: number, cachedTokens = 0) => ({
  ...{ inputTokens, outputTokens, cachedTokens, reasoningTokens: 0 },
});

describe('the most that a call can cost', () => {
  test('is a third of the bytes of system, messages and tools, and the longest answer', () => {
    expect(promptTokens(request({ system: 'abcdef' }))).toBe(2);
    expect(promptTokens(request({ messages: [{ role: 'user', content: '请明' }] }))).toBe(2);
    const tools = [{ name: 'abc', description: 'abc', parameters: { a: 1 } }];
    expect(promptTokens(request({ tools }))).toBe(Math.ceil((3 + 3 + 7) / 3));
    const call = { id: 'c', name: 'look', args: { q: 'x'.repeat(300) } };
    const answered = request({
      messages: [
        {
          role: 'assistant',
          content: '',
          toolCalls: [call],
          providerState: { provider: 'p', blocks: 'y'.repeat(300) },
        },
        { role: 'tool', results: [{ id: 'c', name: 'look', content: 'z'.repeat(300), isError: false }] },
      ],
    });
    expect(promptTokens(answered)).toBeGreaterThan(300);
    expect(mostOf(request({ system: 'abcdef' }), null)).toEqual({ tokens: 12, usd: 0 });
  });

  test('counts the dearer of reading and of writing the cache', () => {
    const price = { input: 100, cacheWrite: 125, cachedInput: 1, output: 1000 };
    expect(mostOf(request({ system: 'abcdef' }), price).usd).toBeCloseTo((2 * 125 + 10 * 1000) / 1e6, 12);
  });
});

describe('the price of a call', () => {
  const price = {
    ...{ input: 10, cachedInput: 1, cacheWrite: 12, output: 100 },
    longPrompt: { above: 1000, input: 20, output: 200 },
  };
  test.each([
    ['plain', used(100, 10), 100 * 10 + 10 * 100],
    ['partly cached', used(100, 10, 40), 60 * 10 + 40 + 10 * 100],
    ['partly written to the cache', { ...used(100, 0, 40), cacheWriteTokens: 50 }, 10 * 10 + 40 + 50 * 12],
    ['at the edge of a long prompt', used(1000, 1), 1000 * 10 + 100],
    ['of a long prompt, all of it dearer, its cache at the full price', used(1001, 1, 1), 1001 * 20 + 200],
    ['with more in the cache than came in', used(10, 0, 99), 10],
  ])('%s', (_name, tokens, millionths) => {
    expect(costOf(price, tokens)).toBeCloseTo(millionths / 1e6, 12);
  });
});

describe('a breach', () => {
  const none = { budget: null, chatBudget: null };
  const free = { chat: nothing(), world: nothing() };

  test('is what goes beyond a limit, not what just reaches it', () => {
    const settings = { ...none, chatBudget: { tokens: 100 } };
    expect(findBreach(settings, totals({ tokens: 90, usd: 0 }), free, { tokens: 10, usd: 0 })).toBeNull();
    expect(findBreach(settings, totals({ tokens: 90, usd: 0 }), free, { tokens: 11, usd: 0 })).toEqual({
      ...{ limit: 'chatBudget', unit: 'tokens', used: 90, max: 100, own: 100, wanted: 11 },
    });
  });

  test('counts what is in flight, and what was granted', () => {
    const settings = { ...none, budget: { tokens: 100 } };
    const flying = { chat: nothing(), world: { tokens: 60, usd: 0 } };
    const spent = totals(nothing(), { tokens: 30, usd: 0 });
    expect(findBreach(settings, spent, flying, { tokens: 20, usd: 0 })).toMatchObject({ limit: 'budget', used: 90 });
    spent.world.granted.tokens = 100;
    expect(findBreach(settings, spent, flying, { tokens: 20, usd: 0 })).toBeNull();
  });

  test('of money does not come from the rounding of sums', () => {
    const spent = totals({ tokens: 0, usd: 0.1 + 0.2 });
    expect(findBreach({ ...none, chatBudget: { usd: 0.4 } }, spent, free, { tokens: 9, usd: 0.1 })).toBeNull();
  });

  test('of the chat is told before one of the world', () => {
    const settings = { budget: { tokens: 1 }, chatBudget: { usd: 1 } };
    expect(findBreach(settings, totals(), free, { tokens: 2, usd: 2 })).toMatchObject({ limit: 'chatBudget' });
  });

  test('tells in words how far, by how much, and both ways on', () => {
    const breach: Breach = { limit: 'budget', unit: 'usd', used: 0.0042, max: 0.01, own: 0.01, wanted: 0.0061 };
    const text = breachText(breach, 'Ada');
    for (const part of ['World budget', '$0.0042 of $0.01', 'Ada', '$0.0061', 'Continue grants $0.01', '$0.0103']) {
      expect(text).toContain(part);
    }
  });

  test('kinds: none, tokens, money', () => {
    expect(budgetKinds(none)).toEqual({ any: false, money: false });
    expect(budgetKinds({ ...none, budget: {} })).toEqual({ any: false, money: false });
    expect(budgetKinds({ ...none, budget: { tokens: 1 } })).toEqual({ any: true, money: false });
    expect(budgetKinds({ ...none, chatBudget: { usd: 1 } })).toEqual({ any: true, money: true });
  });
});

describe('at a budget', () => {
  const breach: Breach = { limit: 'chatBudget', unit: 'tokens', used: 9, max: 10, own: 10, wanted: 5 };
  const wake = (n: number): Omit<HeldWake, 'limit' | 'budget'> => ({
    ...{ messageId: `m${n}` as MessageId, seq: n, agentId: 'a' as AgentId, reason: 'address', hop: 0, from: 'x' },
  });

  test('the room is told once for each height of the limit', () => {
    const first = holdAtBudget(freshLedger(), breach, wake(1), 'text');
    const second = holdAtBudget(first.ledger, breach, wake(2), 'text');
    const raised = holdAtBudget(second.ledger, { ...breach, max: 20 }, wake(3), 'text');
    expect([first, second, raised].map(({ limits }) => limits.length)).toEqual([1, 0, 1]);
    expect(raised.ledger.held.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  test('a wake is held once, and not more than the ledger bears', () => {
    let { ledger } = holdAtBudget(freshLedger(), breach, wake(1), 'text');
    ledger = holdAtBudget(ledger, breach, wake(1), 'text').ledger;
    expect(ledger.held).toHaveLength(1);
    for (let n = 2; n < MAX_HELD + 10; n++) ledger = holdAtBudget(ledger, breach, wake(n), 'text').ledger;
    expect(ledger.held).toHaveLength(MAX_HELD);
  });

  test('continue grants each reached limit its own value once, whatever it holds, and nothing where it was raised', () => {
    const settings = { chatBudget: { tokens: 10, usd: 1 }, budget: { tokens: 50 } };
    let { ledger } = holdAtBudget(freshLedger(), breach, wake(1), 'text');
    ledger = holdAtBudget(ledger, breach, wake(2), 'text').ledger;
    const granted = { chat: nothing(), world: nothing() };
    expect(grantOf(ledger.held, settings, granted)).toEqual({ chat: { tokens: 10, usd: 0 }, world: nothing() });
    const before = { chat: { tokens: 10, usd: 0 }, world: nothing() };
    expect(grantOf(ledger.held, settings, before)).toEqual({ chat: nothing(), world: nothing() });
    expect(grantOf(ledger.held, { ...settings, chatBudget: { tokens: 11 } }, granted).chat.tokens).toBe(0);
    expect(grantOf(ledger.held, { ...settings, chatBudget: null }, granted).chat.tokens).toBe(0);
  });
});
