/** Counts what a turn's model calls use, and lets no call begin that could go beyond a budget. */
import type { Amount, Directory, ModelRequest, Prices, TokenUsage, TurnWork } from '../ports.ts';
import { EMPTY_USAGE, type Usage } from '../protocol/entities.ts';
import { AppError } from '../protocol/errors.ts';
import { amountOf, BudgetReached, budgetKinds, costOf, findBreach, mostOf } from './budget.ts';
import type { Rosters } from './rosters.ts';

/** One turn's account. What is reserved or used counts against the budgets until it is stored or the meter closed. */
export interface Meter {
  /** Of the whole turn, with what earlier executions used. */
  total(): Usage;
  /** What the store does not have yet. */
  fresh(): Usage;
  /**
   * Reserves the most that a call can cost. Throws BudgetReached, or AppError `price_unknown` where a budget is of money
   * and nobody knows the model's price: the call must then not be made.
   */
  reserve(provider: string, request: ModelRequest): Promise<Reservation>;
  /** The store has what was fresh. */
  stored(): void;
  close(): void;
}

export interface Reservation {
  /** Puts what was used in the place of what was reserved; once. `isEstimated`: the provider did not count. */
  settle(used: TokenUsage, isEstimated: boolean): void;
}

export interface Meters {
  open(work: TurnWork): Meter;
}

/** What the turns of one chat or world have reserved and used beyond what is stored. */
interface Account {
  amount: Amount;
  meters: number;
}

/** Accounts live only while a turn of theirs runs. */
export function openMeters(deps: { store: Pick<Directory, 'budgetTotals'>; rosters: Rosters; prices: Prices }): Meters {
  const accounts = new Map<string, Account>();
  /** Moves on whenever something went from an account into the store: totals read before that are old. */
  let moved = 0;

  function join(key: string): Account {
    const account = accounts.get(key) ?? { amount: { tokens: 0, usd: 0 }, meters: 0 };
    account.meters++;
    accounts.set(key, account);
    return account;
  }
  function leave(key: string, account: Account): void {
    account.meters--;
    if (account.meters === 0) accounts.delete(key);
  }

  return {
    open(work) {
      const keys = { chat: `c ${work.chatId}`, world: `w ${work.worldId}` };
      const chat = join(keys.chat);
      const world = join(keys.world);
      const total: Usage = { ...work.usage };
      let fresh: Usage = { ...EMPTY_USAGE };
      const mine: Amount = { tokens: 0, usd: 0 };
      const add = ({ tokens, usd }: Amount, sign: 1 | -1) => {
        for (const amount of [chat.amount, world.amount, mine]) {
          amount.tokens += sign * tokens;
          amount.usd += sign * usd;
        }
      };
      let isOpen = true;

      return {
        total: () => ({ ...total }),
        fresh: () => ({ ...fresh }),
        async reserve(provider, request) {
          const price = deps.prices.find(provider, request.model);
          const reserved: Amount = { tokens: 0, usd: 0 };
          for (let isReserved = false; !isReserved; ) {
            const { world: settings } = await deps.rosters.get(work.worldId);
            const kinds = budgetKinds(settings);
            if (kinds.money && price === null) {
              throw new AppError(
                'price_unknown',
                `this room has a budget in money, and the price of ${request.model} (${provider}) is not known; an owner can add it to prices in config.yaml, or set the budget in tokens`,
              );
            }
            if (!kinds.any) break;
            const before = moved;
            const totals = await deps.store.budgetTotals(work.chatId);
            if (before !== moved) continue;
            const wanted = mostOf(request, price);
            const breach = findBreach(settings, totals, { chat: chat.amount, world: world.amount }, wanted);
            if (breach) throw new BudgetReached(breach);
            Object.assign(reserved, wanted);
            add(reserved, 1);
            isReserved = true;
          }
          let isSettled = false;
          return {
            settle(used, isEstimated) {
              if (isSettled) return;
              isSettled = true;
              const { inputTokens, outputTokens, cachedTokens, reasoningTokens } = used;
              const call: Usage = {
                ...{ inputTokens, outputTokens, cachedTokens, reasoningTokens },
                usd: price === null ? 0 : costOf(price, used),
                calls: 1,
                ...(isEstimated ? { estimated: true } : {}),
              };
              addUsage(total, call);
              addUsage(fresh, call);
              add(reserved, -1);
              add(amountOf(call), 1);
            },
          };
        },
        stored() {
          add(amountOf(fresh), -1);
          fresh = { ...EMPTY_USAGE };
          moved++;
        },
        close() {
          if (!isOpen) return;
          isOpen = false;
          add({ ...mine }, -1);
          moved++;
          leave(keys.chat, chat);
          leave(keys.world, world);
        },
      };
    },
  };
}

export function addUsage(to: Usage, usage: Usage): void {
  to.calls += usage.calls;
  to.inputTokens += usage.inputTokens;
  to.outputTokens += usage.outputTokens;
  to.cachedTokens += usage.cachedTokens;
  to.reasoningTokens += usage.reasoningTokens;
  to.usd += usage.usd;
  if (usage.estimated) to.estimated = true;
}
