import type { Bus, Claim, Clock, Ids, Log, Store, TurnWork } from '../ports.ts';
import { Fenced } from '../ports.ts';
import { AppError } from '../protocol/errors.ts';
import type { StoredEvent } from '../protocol/events.ts';
import { type ChatWindow, emptyWindow, extendWindow, type WindowLimits } from './context.ts';
import { type Live, openLive } from './live.ts';
import type { Meter, Meters } from './meter.ts';
import type { Slots } from './slots.ts';
import { DEFAULT_TURN_TIMEOUT_MS, executeTurn, type FinishedTurn, type TurnDeps } from './turn.ts';
import { TurnAborted } from './turn-outcome.ts';

const PAGE = 500;
/** A turn that was running at this many crashes is not tried again. */
export const MAX_CRASHES = 3;
const MAX_REPLANS = 20;
/** How many turns beside its own slot's a commit may start; more are started by the next round. */
const FAN_OUT = 8;
/** A write that the store refuses (a full disk) is tried again this often. */
const STORE_RETRY_MS = 1000;

export interface RunnerDeps extends TurnDeps {
  store: Store;
  meters: Meters;
  bus: Bus;
  ids: Ids;
  clock: Clock;
  log: Log;
  window: WindowLimits;
  joinMs: number;
  publish(events: readonly StoredEvent[]): void;
}

/** Runs the turns of one claimed chat, several at a time, until it has none. */
export interface ChatRunner {
  readonly claim: Claim;
  /** There may be new turns, or room for more. */
  poke(): void;
  /** Aborts every running turn and resolves when each has ended. New ones are aborted too until then. */
  abortAll(why: TurnAborted['why']): Promise<void>;
  live(): Live[];
  /** Resolves when the chat has been released or lost. Never rejects. */
  done: Promise<void>;
}

interface Running {
  controller: AbortController;
  live: Live;
  ended: Promise<void>;
}

export function startRunner(deps: RunnerDeps, claim: Claim, slots: Slots): ChatRunner {
  const { store, clock, log } = deps;
  const running = new Map<string, Running>();
  const window = emptyWindow();
  let windowRev = 0;
  let filling: Promise<void> = Promise.resolve();
  let aborting: TurnAborted['why'] | null = null;
  let poked = true;
  let lost = false;
  /** Rounds in a row in which the chat could not be released and nothing started. */
  let barren = 0;
  let closing = false;
  let wakeUp: (() => void) | null = null;
  const wake = () => {
    wakeUp?.();
    wakeUp = null;
  };

  /** Brings the window up to what is committed now; one reader at a time. What was read at an older revision is void. */
  function fillWindow(rev: number): Promise<void> {
    filling = filling.then(async () => {
      if (rev > windowRev) {
        windowRev = rev;
        Object.assign(window, emptyWindow());
      }
      if (window.lastSeq === 0) {
        // The newest part alone: what is older than a full window is never read.
        const newest = await store.messages(claim.chatId, { limit: Math.min(PAGE, deps.window.messages) });
        extendWindow(window, newest.messages, deps.window);
        return;
      }
      for (;;) {
        const { messages } = await store.messages(claim.chatId, { after: window.lastSeq, limit: PAGE });
        extendWindow(window, messages, deps.window);
        if (messages.length < PAGE) return;
      }
    });
    return filling;
  }

  /** How many more turns may start: the world's parallelTurns and the process's slots. */
  async function room(): Promise<number> {
    const { world } = await deps.rosters.get(claim.worldId);
    return Math.max(0, world.parallelTurns - running.size);
  }

  function launch(works: readonly TurnWork[]): void {
    for (const work of works) {
      const controller = new AbortController();
      const live = openLive({ ...deps, turn: work });
      const entry: Running = { controller, live, ended: Promise.resolve() };
      running.set(work.id, entry);
      if (aborting) controller.abort(new TurnAborted(aborting));
      entry.ended = runTurn(work, controller, live).then((started) => {
        running.delete(work.id);
        launch(started);
        slots.give(1 - started.length);
        wake();
      });
    }
  }

  /** Never rejects: what goes wrong is an outcome, or is logged and leaves the turn to the next start. */
  async function runTurn(work: TurnWork, controller: AbortController, live: Live): Promise<TurnWork[]> {
    const timeoutMs = work.agent.limits.timeoutMs ?? DEFAULT_TURN_TIMEOUT_MS;
    const meter = deps.meters.open(work);
    const cancelTimeout = clock.after(timeoutMs, () => controller.abort(new TurnAborted('timeout')));
    try {
      await fillWindow(work.chatRev);
      const snapshot: ChatWindow = { ...window, entries: window.entries.slice() };
      const result = await executeTurn(deps, claim, work, snapshot, live, meter, controller.signal);
      live.end();
      if (result === 'parked') {
        // Only this turn gave up its place; others may take the room.
        poked = true;
        return [];
      }
      return await commit(work, result, meter, controller.signal);
    } catch (error) {
      live.end();
      if (error instanceof TurnAborted && error.why === 'shutdown') await abandon(work, meter);
      else if (error instanceof Fenced || error instanceof TurnAborted) lost ||= error instanceof Fenced;
      else log.error({ ...fields(work), err: error }, 'a turn could not be ended; it is tried again at the next start');
      return [];
    } finally {
      cancelTimeout();
      meter.close();
    }
  }

  async function abandon(work: TurnWork, meter: Meter): Promise<void> {
    try {
      await store.abandon(claim, work.id, meter.fresh());
    } catch (error) {
      log.warn({ ...fields(work), err: error }, 'a turn could not be put back; the next start recovers it');
    }
  }

  async function commit(work: TurnWork, result: FinishedTurn, meter: Meter, signal: AbortSignal): Promise<TurnWork[]> {
    let { outcome } = result;
    for (let replans = 0; replans < MAX_REPLANS; replans++) {
      // Its own slot goes on to the next turn; a few more are taken for a hand-over to several.
      const extra = aborting ? 0 : slots.take(Math.min(FAN_OUT, await room()));
      const start = aborting ? 0 : 1 + extra;
      const wanted = outcome;
      try {
        const committed = await insist(() => store.commitTurn(claim, work, wanted, meter.fresh(), start), signal);
        if (committed.ok) {
          meter.stored();
          deps.publish(committed.changed.events);
          const { started } = committed.changed.value;
          if (started.length === start) poked = true;
          return started;
        }
      } finally {
        slots.give(extra);
      }
      if (outcome.state === 'done' && result.replan) outcome = { ...outcome, plan: await result.replan() };
    }
    throw new Error('the roster changed at every try to store a reply');
  }

  /** Tries a write again while the disk is full or the database locked: nothing that was said is given up. */
  async function insist<T>(write: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        const isStorage = error instanceof AppError && (error.code === 'storage_full' || error.code === 'busy');
        if (!isStorage) throw error;
        if (closing || (signal?.reason instanceof TurnAborted && signal.reason.why === 'shutdown')) {
          throw new TurnAborted('shutdown');
        }
        log.error({ chat: claim.chatId, err: error }, 'the store refused a write; trying again');
        await clock.sleep(STORE_RETRY_MS);
      }
    }
  }

  async function drive(): Promise<void> {
    for (;;) {
      if (lost) return;
      if (poked && !aborting) {
        poked = false;
        const free = slots.take(await room());
        const started = free === 0 ? [] : await startTurns(free);
        slots.give(free - started.length);
        launch(started);
        if (started.length > 0) barren = 0;
        if (free === 0 && running.size === 0) await slots.freed();
        poked ||= free === 0 && running.size === 0;
      }
      if (lost || (poked && !aborting)) continue;
      if (running.size === 0 && !aborting) {
        if (await insist(() => store.release(claim))) return;
        // Work that neither runs nor can start was lost by a fault: it is taken up again, once.
        if (barren === 1) deps.publish((await insist(() => store.reclaim(claim, MAX_CRASHES))).events);
        if (barren++ > 1) throw new Error('the chat has turns that cannot start');
        poked = true;
        continue;
      }
      // Nothing is awaited between the checks and here, so that no wake-up is lost.
      if (lost || (poked && !aborting)) continue;
      await new Promise<void>((resolve) => {
        wakeUp = resolve;
      });
    }
  }

  async function startTurns(n: number): Promise<TurnWork[]> {
    const { value, events } = await insist(() => store.next(claim, n));
    deps.publish(events);
    return value;
  }

  const fields = (work: TurnWork) => ({ world: work.worldId, chat: work.chatId, turn: work.id, agent: work.agentId });

  const done = drive().catch((error: unknown) => {
    if (error instanceof Fenced || error instanceof TurnAborted) return;
    log.error({ chat: claim.chatId, err: error }, 'a chat’s runner ended by a fault');
  });

  return {
    claim,
    done,
    poke() {
      poked = true;
      wake();
    },
    async abortAll(why) {
      aborting = why;
      closing = why === 'shutdown';
      while (running.size > 0) {
        const entries = [...running.values()];
        for (const entry of entries) entry.controller.abort(new TurnAborted(why));
        await Promise.all(entries.map((entry) => entry.ended));
      }
      if (why === 'shutdown') {
        lost = true;
      } else {
        aborting = null;
        poked = true;
      }
      wake();
    },
    live: () => [...running.values()].map((entry) => entry.live),
  };
}
