import { describe, expect, it } from 'vitest';
import { type ChatLedger, type Counts, freshLedger, type RouteDecision } from '../ports.ts';
import { MessageId } from '../protocol/ids.ts';
import { grantHeld, type LimitSettings, MAX_HELD, type PlanInput, pairKey, planRoute } from './limits.ts';
import { route } from './router.ts';
import { rosterOf, senderOf } from './routing-case.ts';

const roster = rosterOf([
  { id: 'alice', name: 'Alice' },
  { id: 'bob', name: 'Bob' },
  { id: 'carol', name: 'Carol' },
]);
const defaults = { turnLimit: 5, hopLimit: 20, pairLimit: 20, chatTurnLimit: 200, budget: null, chatBudget: null };
const NO_GRANT = { chat: { tokens: 0, usd: 0 }, world: { tokens: 0, usd: 0 } };
const none: LimitSettings = { turnLimit: null, hopLimit: null, pairLimit: null, chatTurnLimit: null };

interface Case {
  from?: string;
  content?: string;
  isHuman?: boolean;
  settings?: Partial<LimitSettings>;
  hop?: number;
  nowMs?: number;
}

function planOf({ from = 'agent:bob', content = '@alice go', settings, ...rest }: Case = {}) {
  const sender = senderOf(from);
  const routed = route({
    content,
    sender,
    roster,
    settings: { mainAgent: null, humanMentions: 'line', agentBroadcasts: true },
  });
  const input: PlanInput = {
    routed,
    messageId: MessageId.parse('m1'),
    sender,
    isHuman: sender.kind === 'human',
    settings: { ...defaults, ...settings },
    roster,
    rosterRev: 7,
    hop: sender.kind === 'agent' ? 1 : 0,
    nowMs: 1000,
    ...rest,
  };
  return planRoute(input);
}

function decide(c: Case, ledger: ChatLedger = freshLedger(), counts: Partial<Record<'turns' | 'pairs', object>> = {}) {
  const asked: Counts = {
    turnsOf: new Map(Object.entries((counts.turns ?? {}) as Record<string, number>)),
    pairOf: new Map(Object.entries((counts.pairs ?? {}) as Record<string, number>)),
  };
  return planOf(c).decide(ledger, asked);
}

const woken = (decision: RouteDecision) => decision.wakes.map(({ agentId }) => agentId as string);

describe('the plan', () => {
  it('asks the store for counts that a limit needs, and for no others', () => {
    expect(planOf().count).toEqual({ turns: true, pairs: true });
    expect(planOf({ settings: none }).count).toEqual({ turns: false, pairs: false });
    expect(planOf({ from: 'human' }).count).toEqual({ turns: false, pairs: false });
    expect(planOf({ from: 'world' }).count).toEqual({ turns: true, pairs: false });
    expect(planOf({ content: 'nobody' }).count).toEqual({ turns: false, pairs: false });
  });

  it('names its roster revision and its candidates', () => {
    const plan = planOf({ content: '@alice @carol go' });
    expect([plan.rosterRev, plan.candidates]).toEqual([7, ['alice', 'carol']]);
  });

  it('wakes with the hop of the message and counts each wake as a turn of the chat', () => {
    const decision = decide({ content: '@alice @carol go', hop: 3 });
    expect(decision.wakes).toEqual([
      { agentId: 'alice', reason: 'address', hop: 3 },
      { agentId: 'carol', reason: 'address', hop: 3 },
    ]);
    expect(decision.ledger.total).toBe(2);
    expect(decision.routing.woke).toHaveLength(2);
  });

  it('never changes the ledger that it is given', () => {
    const ledger = Object.freeze({ ...freshLedger(), resting: Object.freeze({ 'alice bob': 5 }) });
    const before = JSON.stringify(ledger);
    decide({}, ledger, { pairs: { alice: 20 } });
    expect(JSON.stringify(ledger)).toBe(before);
  });
});

describe('turnLimit', () => {
  it('wakes an agent whose turns are one below it', () => {
    expect(woken(decide({}, freshLedger(), { turns: { alice: 4 } }))).toEqual(['alice']);
  });

  it('holds back the agent that reached it and wakes the others', () => {
    const decision = decide({ content: '@Alice @carol go' }, freshLedger(), { turns: { alice: 5, carol: 1 } });
    expect(woken(decision)).toEqual(['carol']);
    expect(decision.routing.ignored).toEqual([{ text: '@Alice', reason: 'limit', agentId: 'alice' }]);
    expect(decision.ledger.held).toEqual([
      { messageId: 'm1', seq: 0, agentId: 'alice', reason: 'address', hop: 1, from: 'bob', limit: 'turnLimit' },
    ]);
    expect(decision.limits).toMatchObject([{ limit: 'turnLimit', used: 5, max: 5, agentId: 'alice' }]);
  });

  it('gives one notice when it holds back several agents', () => {
    const decision = decide({ content: '@all go' }, freshLedger(), { turns: { alice: 5, carol: 6 } });
    expect(decision.limits).toHaveLength(1);
    expect(decision.limits[0]).toMatchObject({ limit: 'turnLimit', used: 6, max: 5 });
    expect(decision.limits[0]).not.toHaveProperty('agentId');
    for (const word of ['Alice', 'Carol', '5', 'Continue']) expect(decision.limits[0]?.text).toContain(word);
    expect(decision.routing.ignored.map(({ text }) => text)).toEqual(['alice', 'carol']);
  });

  it('keeps the order of the text in the receipt', () => {
    const content = '@x @alice @y @carol go `@bob`';
    const { routing } = decide({ from: 'agent:bob', content }, freshLedger(), { turns: { alice: 5, carol: 5 } });
    expect(routing.ignored.map(({ text }) => text)).toEqual(['@x', '@alice', '@y', '@carol', '@bob']);
  });

  it('tells the room once', () => {
    const first = decide({}, freshLedger(), { turns: { alice: 5 } });
    const second = decide({}, first.ledger, { turns: { alice: 5 } });
    expect([first.limits.length, second.limits.length]).toEqual([1, 0]);
    expect(second.ledger.held).toHaveLength(2);
  });
});

describe('hopLimit', () => {
  it('ends a chain of exactly that many agent messages', () => {
    expect(woken(decide({ hop: 19 }))).toEqual(['alice']);
    const decision = decide({ hop: 20 });
    expect(woken(decision)).toEqual([]);
    expect(decision.limits).toMatchObject([{ limit: 'hopLimit', used: 20, max: 20 }]);
  });
});

describe('chatTurnLimit', () => {
  it('stops in the middle of a fan-out', () => {
    const decision = decide({ from: 'world', content: 'noon' }, { ...freshLedger(), total: 198 });
    expect(woken(decision)).toEqual(['alice', 'bob']);
    expect(decision.limits).toMatchObject([{ limit: 'chatTurnLimit', used: 200, max: 200 }]);
    expect(decision.ledger.total).toBe(200);
  });
});

describe('pairLimit', () => {
  const counts = { pairs: { alice: 20 } };

  it('sends the pair to rest, whichever of the two speaks', () => {
    const { ledger, limits } = decide({ nowMs: 1000 }, freshLedger(), counts);
    expect(ledger.resting).toEqual({ [pairKey('bob', 'alice')]: 61_000 });
    expect(limits).toMatchObject([{ limit: 'pairLimit', used: 20, max: 20 }]);
    expect(woken(decide({ from: 'agent:alice', content: '@bob go', nowMs: 2000 }, ledger))).toEqual([]);
  });

  it('does not prolong the rest, and lets other pairs talk', () => {
    const { ledger } = decide({ nowMs: 1000 }, freshLedger(), counts);
    const again = decide({ content: '@alice @carol go', nowMs: 50_000 }, ledger, counts);
    expect(woken(again)).toEqual(['carol']);
    expect(again.ledger.resting).toEqual(ledger.resting);
    expect(again.limits).toEqual([]);
  });

  it('works again after 60 s, and tells the room of the next rest', () => {
    const { ledger } = decide({ nowMs: 1000 }, freshLedger(), counts);
    const later = decide({ nowMs: 61_000 }, ledger, { pairs: { alice: 0 } });
    expect(woken(later)).toEqual(['alice']);
    expect(later.ledger.resting).toEqual({});
    expect(decide({ nowMs: 62_000 }, later.ledger, counts).limits).toHaveLength(1);
  });

  it('counts only between agents', () => {
    expect(woken(decide({ from: 'world' }, freshLedger(), counts))).toEqual(['alice']);
  });
});

describe('no limit', () => {
  it('holds nothing back', () => {
    const ledger = { ...freshLedger(), total: 1e6 };
    const decision = decide({ settings: none, hop: 1e6 }, ledger, { turns: { alice: 1e6 }, pairs: { alice: 1e6 } });
    expect(woken(decision)).toEqual(['alice']);
    expect(decision.limits).toEqual([]);
  });
});

describe('several limits', () => {
  it('reports the widest that is reached: chat, chain, agent, pair', () => {
    const full = { turns: { alice: 5 }, pairs: { alice: 20 } };
    const limitOf = (c: Case, total: number, counts = full) =>
      decide(c, { ...freshLedger(), total }, counts).limits.map(({ limit }) => limit);
    expect(limitOf({ hop: 20 }, 200)).toEqual(['chatTurnLimit']);
    expect(limitOf({ hop: 20 }, 0)).toEqual(['hopLimit']);
    expect(limitOf({}, 0)).toEqual(['turnLimit']);
    expect(limitOf({}, 0, { turns: { alice: 1 }, pairs: { alice: 20 } })).toEqual(['pairLimit']);
  });
});

describe('a message of a person', () => {
  const used: ChatLedger = {
    total: 200,
    granted: { turnLimit: 5 },
    told: ['chatTurnLimit'],
    held: decide({ hop: 20 }).ledger.held,
    resting: { 'alice bob': 99_000 },
  };

  it('starts every count again, even one that wakes nobody', () => {
    expect(decide({ from: 'human' }, used, { turns: { alice: 9 } }).ledger).toEqual({ ...freshLedger(), total: 1 });
    expect(decide({ from: 'human', content: '<world>STOP</world> x' }, used).ledger).toEqual(freshLedger());
  });

  it('resets nothing when a tool, a plugin or the world speaks in its place', () => {
    expect(decide({ from: 'human', isHuman: false }, used).ledger.total).toBe(200);
    expect(decide({ from: 'world' }, used).wakes).toEqual([]);
  });
});

describe('continue', () => {
  it('has nothing to grant where nothing is held', () => {
    expect(grantHeld(freshLedger(), defaults, NO_GRANT)).toBeNull();
  });

  it('raises the reached limit by its own value, for every agent, and queues what was held', () => {
    const { ledger } = decide({}, freshLedger(), { turns: { alice: 5 } });
    const granted = grantHeld(ledger, defaults, NO_GRANT);
    expect(granted?.wakes).toEqual(ledger.held);
    expect(granted?.ledger).toEqual({ total: 1, granted: { turnLimit: 5 }, told: [], held: [], resting: {} });
    const next = (turns: number) => decide({ content: '@carol go' }, granted?.ledger, { turns: { carol: turns } });
    expect(woken(next(9))).toEqual(['carol']);
    expect(next(10).limits).toMatchObject([{ limit: 'turnLimit', used: 10, max: 10 }]);
  });

  it('can be used again and again', () => {
    let ledger = freshLedger();
    for (const hop of [20, 40, 60]) {
      const decision = decide({ hop }, ledger);
      expect(decision.limits).toMatchObject([{ limit: 'hopLimit', used: hop, max: hop }]);
      ledger = grantHeld(decision.ledger, defaults, NO_GRANT)?.ledger ?? freshLedger();
    }
    expect(ledger.granted).toEqual({ hopLimit: 60 });
  });

  it('ends a rest, and leaves limits alone that hold nothing', () => {
    const { ledger } = decide({}, { ...freshLedger(), told: ['hopLimit'] }, { pairs: { alice: 20 } });
    expect(grantHeld(ledger, defaults, NO_GRANT)?.ledger).toMatchObject({
      granted: { pairLimit: 20 },
      told: ['hopLimit'],
      resting: {},
    });
  });
});

it('bounds what a ledger holds, and keeps the newest', () => {
  let ledger = freshLedger();
  for (let i = 0; i < MAX_HELD + 10; i += 1) ledger = decide({ hop: 20 + i }, ledger).ledger;
  expect(ledger.held).toHaveLength(MAX_HELD);
  expect(ledger.held.at(-1)?.hop).toBe(20 + MAX_HELD + 9);
});

it('ends a loop of two agents that address each other for ever', () => {
  let ledger = decide({ from: 'human', content: '@alice go' }).ledger;
  const turns: Record<string, number> = { alice: 1, bob: 0 };
  const notices: string[] = [];
  let speaker = 'alice';
  for (let hop = 1; hop < 100; hop += 1) {
    const other = speaker === 'alice' ? 'bob' : 'alice';
    const decision = decide({ from: `agent:${speaker}`, content: `@${other} you`, hop }, ledger, { turns });
    ledger = decision.ledger;
    notices.push(...decision.limits.map(({ limit }) => limit));
    if (decision.wakes.length === 0) break;
    turns[other] = (turns[other] ?? 0) + 1;
    speaker = other;
  }
  expect(turns).toEqual({ alice: 5, bob: 5 });
  expect(notices).toEqual(['turnLimit']);
});
