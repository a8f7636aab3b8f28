/** Budgets of tokens and money. Pure: totals come in, what is too much and what `continue` grants go out. */
import type { Amount, BudgetTotals, ChatLedger, HeldWake, LimitNotice, ModelRequest, TokenUsage } from '../ports.ts';
import type { Budget, Usage, WorldSettings } from '../protocol/entities.ts';
import type { AgentId } from '../protocol/ids.ts';
import type { ModelPrice } from '../protocol/settings.ts';

const MILLION = 1_000_000;
/** The ledger is read and written with every turn; beyond this the oldest held wakes are dropped. */
export const MAX_HELD = 1000;
/** Sums of money are floating: less than this above a limit is not above it. */
const USD_ROUNDING = 1e-9;

export type BudgetName = 'budget' | 'chatBudget';
export type BudgetSettings = Pick<WorldSettings, BudgetName>;

/** A call that was not made because it could go beyond a budget. */
export interface Breach {
  limit: BudgetName;
  unit: keyof Amount;
  /** Spent, with what calls in flight have reserved. */
  used: number;
  max: number;
  /** The limit's own value, which `continue` grants again. */
  own: number;
  /** The most that the call could have cost. */
  wanted: number;
}

export class BudgetReached extends Error {
  override readonly name = 'BudgetReached';
  readonly breach: Breach;
  constructor(breach: Breach) {
    super(`${breach.limit} is reached`);
    this.breach = breach;
  }
}

const bytes = (text: string): number => Buffer.byteLength(text);

/** UTF-8 bytes ÷ 3 of all that a call sends. */
export function promptTokens(request: ModelRequest): number {
  let sum = bytes(request.system);
  for (const message of request.messages) {
    if (message.role === 'tool') {
      for (const result of message.results) sum += bytes(result.content) + bytes(result.name) + bytes(result.id);
      continue;
    }
    sum += bytes(message.content);
    if (message.role === 'user') continue;
    if (message.toolCalls.length > 0) sum += bytes(JSON.stringify(message.toolCalls));
    if (message.providerState) sum += bytes(JSON.stringify(message.providerState.blocks));
  }
  for (const tool of request.tools) {
    sum += bytes(tool.name) + bytes(tool.description) + bytes(JSON.stringify(tool.parameters));
  }
  return Math.ceil(sum / 3);
}

/** The most that a call can cost: nothing from the cache, as much output as allowed. */
export function mostOf(request: ModelRequest, price: ModelPrice | null): Amount {
  const inputTokens = promptTokens(request);
  const outputTokens = request.maxTokens;
  const most = { inputTokens, outputTokens, cachedTokens: 0, cacheWriteTokens: inputTokens, reasoningTokens: 0 };
  return { tokens: inputTokens + outputTokens, usd: price === null ? 0 : costOf(price, most) };
}

/** USD of one call. */
export function costOf(price: ModelPrice, used: TokenUsage): number {
  const { longPrompt } = price;
  const rates = longPrompt && used.inputTokens > longPrompt.above ? longPrompt : price;
  const cached = Math.min(used.cachedTokens, used.inputTokens);
  const written = Math.min(used.cacheWriteTokens ?? 0, used.inputTokens - cached);
  return (
    ((used.inputTokens - cached - written) * rates.input +
      cached * (rates.cachedInput ?? rates.input) +
      written * (rates.cacheWrite ?? rates.input) +
      used.outputTokens * rates.output) /
    MILLION
  );
}

/** What counts against a budget: the cached part is in the input, the thinking in the output. */
export function amountOf(usage: Pick<Usage, 'inputTokens' | 'outputTokens' | 'usd'>): Amount {
  return { tokens: usage.inputTokens + usage.outputTokens, usd: usage.usd };
}

/** The first budget that a call could go beyond; the chat's before the world's, tokens before money. */
export function findBreach(
  settings: BudgetSettings,
  totals: BudgetTotals,
  inFlight: { chat: Amount; world: Amount },
  wanted: Amount,
): Breach | null {
  const places = [
    { limit: 'chatBudget', total: totals.chat, reserved: inFlight.chat },
    { limit: 'budget', total: totals.world, reserved: inFlight.world },
  ] as const;
  for (const { limit, total, reserved } of places) {
    for (const unit of ['tokens', 'usd'] as const) {
      const own = settings[limit]?.[unit];
      if (own === undefined) continue;
      const max = own + total.granted[unit];
      const used = total.spent[unit] + reserved[unit];
      // What costs nothing is never too much.
      if (wanted[unit] === 0) continue;
      if (used + wanted[unit] > max + (unit === 'usd' ? USD_ROUNDING : 0)) {
        return { limit, unit, used, max, own, wanted: wanted[unit] };
      }
    }
  }
  return null;
}

/** Any budget at all, and one of money. */
export function budgetKinds({ budget, chatBudget }: BudgetSettings): { any: boolean; money: boolean } {
  const has = (own: Budget | null, unit: keyof Amount) => own?.[unit] !== undefined;
  const money = has(budget, 'usd') || has(chatBudget, 'usd');
  return { any: money || has(budget, 'tokens') || has(chatBudget, 'tokens'), money };
}

/** An amount as people read it: `1,234 tokens`, `$0.0021`. */
function words(unit: keyof Amount, value: number): string {
  if (unit === 'tokens') return `${value.toLocaleString('en-US')} tokens`;
  return `$${value > 0 && value < 1 ? value.toPrecision(3).replace(/\.?0+$/, '') : value.toFixed(2)}`;
}

export function breachText({ limit, unit, used, max, own, wanted }: Breach, agent: string): string {
  const whose = limit === 'budget' ? 'World budget' : 'Chat budget';
  return `${whose} reached: ${words(unit, used)} of ${words(unit, max)} are used or reserved, and the next call of ${agent} could take up to ${words(unit, wanted)}, so it was not made. Continue grants ${words(unit, own)} more; an owner can raise ${limit} to at least ${words(unit, used + wanted)}.`;
}

/**
 * What a refused call does to the chat's ledger: its wake is held for `continue`, and the room is told once for each
 * height of the limit, however many agents run into it.
 */
export function holdAtBudget(
  ledger: ChatLedger,
  breach: Breach,
  wake: Omit<HeldWake, 'limit' | 'budget'>,
  text: string,
): { ledger: ChatLedger; limits: readonly LimitNotice[] } {
  const { limit, unit, used, max } = breach;
  const height = `${unit} ${max}`;
  const isKnown = ledger.toldBudget?.[limit] === height;
  const held = ledger.held.filter((one) => one.messageId !== wake.messageId || one.agentId !== wake.agentId);
  return {
    ledger: {
      ...ledger,
      held: [...held, { ...wake, limit, budget: { unit, max } }].slice(-MAX_HELD),
      toldBudget: { ...ledger.toldBudget, [limit]: height },
    },
    limits: isKnown ? [] : [{ limit, unit, used, max, agentId: wake.agentId as AgentId, text }],
  };
}

/** What `continue` adds to the budgets that hold wakes back: their own value again, unless they were raised since. */
export function grantOf(
  held: readonly HeldWake[],
  settings: BudgetSettings,
  granted: { chat: Amount; world: Amount },
): { chat: Amount; world: Amount } {
  const grant = { chat: { tokens: 0, usd: 0 }, world: { tokens: 0, usd: 0 } };
  for (const { limit, budget } of held) {
    if (!budget || (limit !== 'budget' && limit !== 'chatBudget')) continue;
    const place = limit === 'budget' ? 'world' : 'chat';
    const own = settings[limit]?.[budget.unit];
    if (own === undefined || own + granted[place][budget.unit] > budget.max) continue;
    grant[place][budget.unit] = own;
  }
  return grant;
}
