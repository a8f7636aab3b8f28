/** The four counting limits that end loops. Pure: the store counts, time comes in, a new ledger goes out. */
import {
  type ChatLedger,
  type Continued,
  type Counts,
  freshLedger,
  type Granted,
  type HeldWake,
  type Ignored,
  type LimitNotice,
  type RouteDecision,
  type RoutePlan,
} from '../ports.ts';
import type { LimitName, WakeReason } from '../protocol/entities.ts';
import type { AgentId, MessageId } from '../protocol/ids.ts';
import { type BudgetSettings, grantOf, MAX_HELD } from './budget.ts';
import { type LimitHit, type LimitSettings, limitNotices, type NoticeContext } from './limit-notices.ts';
import type { RouteResult } from './router.ts';

export type { LimitSettings };
export { MAX_HELD };

/** How long a pair of agents rests when it has reached its limit. */
export const PAIR_REST_MS = 60_000;

export interface PlanInput extends NoticeContext {
  routed: Pick<RouteResult, 'woke' | 'ignored' | 'written'>;
  /** Of the message that is routed, for the wakes that are held back. */
  messageId: MessageId;
  /** A real person, known by their token: their message resets every count. Never an agent, a tool or a plugin. */
  isHuman: boolean;
  rosterRev: number;
  /** Length of the chain of agent messages that ends with this one: 0 for a person's or the world's. */
  hop: number;
  nowMs: number;
}

/** The ledger's key of two agents, whoever speaks. */
export function pairKey(a: string, b: string): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`;
}

/**
 * Turns a routing into a plan for the store. The widest limit is asked first: the chat's turns, the chain,
 * the agent's turns, the pair; the first that is reached holds the wake back. A held wake has seq 0 when its
 * message is not stored yet: the store fills it in. A pair can only be two agents.
 */
export function planRoute(input: PlanInput): RoutePlan {
  const { routed, sender, isHuman, settings } = input;
  const someone = routed.woke.length > 0;
  return {
    rosterRev: input.rosterRev,
    candidates: routed.woke.map(({ agentId }) => agentId),
    count: {
      turns: someone && !isHuman && settings.turnLimit !== null,
      pairs: someone && sender.kind === 'agent' && settings.pairLimit !== null,
    },
    decide: (ledger, counts) => decide(input, ledger, counts),
  };
}

function decide(input: PlanInput, before: ChatLedger, counts: Counts): RouteDecision {
  const { routed, isHuman, hop, nowMs } = input;
  const ledger = isHuman ? afterHuman(before, routed.woke.length > 0) : withoutPastRests(before, nowMs);
  if (routed.woke.length === 0) {
    return { routing: { woke: [], ignored: [...routed.ignored] }, wakes: [], ledger, limits: [] };
  }
  const wakes: { agentId: AgentId; reason: WakeReason; hop: number }[] = [];
  const heldBack: { after: number; entry: Ignored }[] = [];
  const held: HeldWake[] = [...ledger.held];
  const hits: LimitHit[] = [];
  const resting = { ...ledger.resting };
  let total = ledger.total;
  for (const { agentId, reason } of routed.woke) {
    const hit = reached(input, { ...ledger, total, resting }, counts, agentId);
    if (!hit) {
      total += 1;
      wakes.push({ agentId, reason, hop });
      continue;
    }
    const { limit } = hit;
    if (limit === 'pairLimit') resting[pairKey(input.sender.id, agentId)] ??= nowMs + PAIR_REST_MS;
    hits.push(hit);
    held.push({ messageId: input.messageId, seq: 0, agentId, reason, hop, from: input.sender.id, limit });
    const { text, after } = routed.written.get(agentId) ?? { text: agentId, after: routed.ignored.length };
    heldBack.push({ after, entry: { text, reason: 'limit', agentId } });
  }
  const limits: LimitNotice[] = limitNotices(hits, ledger.told, input);
  return {
    routing: {
      woke: wakes.map(({ agentId, reason }) => ({ agentId, reason })),
      ignored: inTextOrder(routed.ignored, heldBack),
    },
    wakes,
    ledger: {
      ...ledger,
      total,
      told: [...ledger.told, ...limits.map(({ limit }) => limit)],
      held: held.slice(-MAX_HELD),
      resting,
    },
    limits,
  };
}

/** `heldBack` ascends: names in the order of the text, then those that nobody wrote. */
function inTextOrder(ignored: readonly Ignored[], heldBack: readonly { after: number; entry: Ignored }[]): Ignored[] {
  const merged: Ignored[] = [];
  let next = 0;
  for (let i = 0; i <= ignored.length; i += 1) {
    for (let held = heldBack[next]; held && held.after <= i; held = heldBack[next]) {
      merged.push(held.entry);
      next += 1;
    }
    const entry = ignored[i];
    if (entry) merged.push(entry);
  }
  return merged;
}

/** The first limit that holds this agent back, or null. */
function reached(input: PlanInput, ledger: ChatLedger, counts: Counts, agentId: AgentId): LimitHit | null {
  const { settings, sender, isHuman, hop } = input;
  const hit = (limit: keyof LimitSettings, used: number): LimitHit | null => {
    const own = settings[limit];
    if (own === null) return null;
    const max = own + (ledger.granted[limit] ?? 0);
    return used >= max ? { limit, used, max, agentId } : null;
  };
  const turns = isHuman ? 0 : (counts.turnsOf.get(agentId) ?? 0);
  const chain = hit('chatTurnLimit', ledger.total) ?? hit('hopLimit', hop) ?? hit('turnLimit', turns);
  if (chain || sender.kind !== 'agent' || settings.pairLimit === null) return chain;
  const exchanged = counts.pairOf.get(agentId) ?? 0;
  const rests = ledger.resting[pairKey(sender.id, agentId)] !== undefined;
  const max = settings.pairLimit + (ledger.granted.pairLimit ?? 0);
  return rests ? { limit: 'pairLimit', used: Math.max(exchanged, 0), max, agentId } : hit('pairLimit', exchanged);
}

/**
 * A person's message begins every count anew. What a budget holds back still waits for `continue`, which nothing else
 * grants, unless the message gives agents something new to do.
 */
function afterHuman(before: ChatLedger, wakesSomeone: boolean): ChatLedger {
  return { ...freshLedger(), held: wakesSomeone ? [] : before.held.filter(({ budget }) => budget !== undefined) };
}

/** A rest that is over is forgotten, and with the last one that the room was told of it: the next is news. */
function withoutPastRests(ledger: ChatLedger, nowMs: number): ChatLedger {
  const all = Object.entries(ledger.resting);
  const present = all.filter(([, until]) => until > nowMs);
  if (present.length === all.length) return ledger;
  const told = present.length > 0 ? ledger.told : ledger.told.filter((limit) => limit !== 'pairLimit');
  return { ...ledger, told, resting: Object.fromEntries(present) };
}

/**
 * What `continue` does: every limit that holds wakes back is raised by its own value again, and what it held
 * is queued. Null where nothing is held. The wakes count as turns of the chat, and none is checked again:
 * a person asked for them.
 */
export function grantHeld(
  ledger: ChatLedger,
  settings: LimitSettings & BudgetSettings,
  grantedSoFar: Granted,
): Continued | null {
  if (ledger.held.length === 0) return null;
  const limits = new Set(ledger.held.map(({ limit }) => limit));
  const granted = { ...ledger.granted };
  for (const limit of limits) {
    const own = limit === 'maxIterations' || limit === 'budget' || limit === 'chatBudget' ? null : settings[limit];
    if (own !== null) granted[limit] = (granted[limit] ?? 0) + own;
  }
  return {
    ledger: {
      // A turn that a budget ended was counted when it began.
      total: ledger.total + ledger.held.filter(({ budget }) => !budget).length,
      granted,
      told: ledger.told.filter((limit: LimitName) => !limits.has(limit)),
      held: [],
      resting: limits.has('pairLimit') ? {} : ledger.resting,
    },
    wakes: ledger.held,
    grant: grantOf(ledger.held, settings, grantedSoFar),
  };
}
