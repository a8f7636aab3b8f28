import type { Bus, Claim, Clock, Ids, Log, Store, TurnOutcome, TurnWork } from '../ports.ts';
import { Fenced } from '../ports.ts';
import { AppError } from '../protocol/errors.ts';
import type { StoredEvent } from '../protocol/events.ts';
import type { WindowLimits } from './context.ts';
import { type Live, openLive } from './live.ts';
import type { Meter, Meters } from './meter.ts';
import type { Slots } from './slots.ts';
import { DEFAULT_TURN_TIMEOUT_MS, executeTurn, type FinishedTurn, type TurnDeps } from './turn.ts';
import { faultOutcomes } from './turn-fault.ts';
import { TurnAborted } from './turn-outcome.ts';
import { openWindowReader } from './window-reader.ts';

/** A turn that was running at this many crashes is not tried again. */
export const MAX_CRASHES = 3;
const MAX_REPLANS = 20;
/** How many turns beside its own slot's a commit may start; more are started by the next round. */
const FAN_OUT = 8;
/** A write that the store refuses (a full disk) is tried again this often. */
const STORE_RETRY_MS = 1000;
/** After a fault of ours the chat rests, each time twice as long. */
const FIRST_REST_MS = 50;
const MAX_REST_MS = 30_000;

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
  /**
   * Aborts every running turn, waits until each has ended and runs `settle`. No turn starts meanwhile; one that is
   * just starting is aborted too.
   */
  abortAll(why: 'stopped' | 'shutdown', settle?: () => Promise<void>): Promise<void>;
  live(): Live[];
  /** Resolves when the chat has been released or lost; a fault of ours is neither. Never rejects. */
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
  const reader = openWindowReader(store, claim.chatId, deps.window);
  const shutdown = new AbortController();
  let stops = 0;
  let starting: Promise<void> | null = null;
  let poked = true;
  let lost = false;
  /** Waits for a slot of the process. */
  let hungry = false;
  /** Rounds in a row that failed, or started nothing although something is queued. */
  let fruitless = 0;
  let wakeUp: (() => void) | null = null;
  const aborting = (): 'stopped' | 'shutdown' | null =>
    shutdown.signal.aborted ? 'shutdown' : stops > 0 ? 'stopped' : null;
  const wake = () => {
    wakeUp?.();
    wakeUp = null;
  };

  /** How many more turns of this world may start, whatever slots the process has. */
  async function room(): Promise<number> {
    const { world } = await deps.rosters.get(claim.worldId);
    return Math.max(0, world.parallelTurns - running.size);
  }

  /** Each of the turns has a slot already. */
  function launch(works: readonly TurnWork[]): void {
    for (const work of works) {
      const controller = new AbortController();
      const live = openLive({ ...deps, turn: work });
      const entry: Running = { controller, live, ended: Promise.resolve() };
      running.set(work.id, entry);
      const why = aborting();
      if (why) controller.abort(new TurnAborted(why));
      entry.ended = runTurn(work, controller, live).then((started) => {
        running.delete(work.id);
        launch(started);
        wake();
      });
    }
  }

  /** Never rejects. Its slot goes on to the turns that it answers with, or back. */
  async function runTurn(work: TurnWork, controller: AbortController, live: Live): Promise<TurnWork[]> {
    const timeoutMs = work.agent.limits.timeoutMs ?? DEFAULT_TURN_TIMEOUT_MS;
    const meter = deps.meters.open(work);
    const cancelTimeout = clock.after(timeoutMs, () => controller.abort(new TurnAborted('timeout')));
    let outcome: TurnOutcome | null = null;
    let slot = 1;
    try {
      const window = await reader.read(work.chatRev);
      const ended = await executeTurn(deps, claim, work, window, live, meter, controller.signal);
      live.end();
      if (ended === 'parked') {
        // Only this turn gave up its place; others may take the room.
        poked = true;
        return [];
      }
      outcome = ended.outcome;
      const started = await commit(work, ended, meter);
      slot = 0;
      return started;
    } catch (error) {
      live.end();
      // Whether the claim is lost, or this turn alone, the next round finds out.
      poked = true;
      if (error instanceof TurnAborted && error.why === 'shutdown') await abandon(work, meter);
      else if (!(error instanceof Fenced || error instanceof TurnAborted))
        await endByFault(work, outcome, meter, error);
      return [];
    } finally {
      cancelTimeout();
      meter.close();
      slots.give(slot);
    }
  }

  /** A fault of ours must not leave a turn that never ends, however often its end has to be tried. */
  async function endByFault(work: TurnWork, outcome: TurnOutcome | null, meter: Meter, fault: unknown): Promise<void> {
    log.error({ ...fields(work), err: fault }, 'a fault kept a turn from its end; it is tried again');
    const outcomes = faultOutcomes(deps.ids, work, outcome, meter.total());
    for (let tries = 0; !shutdown.signal.aborted; ) {
      const wanted = outcomes[0];
      if (!wanted) return;
      if (outcomes.length > 1) outcomes.shift();
      try {
        const ended = await store.commitTurn(claim, work, wanted, meter.fresh(), 0);
        // Stale: the roster has moved on, and the next way to end needs none.
        if (!ended.ok) continue;
        meter.stored();
        return deps.publish(ended.changed.events);
      } catch (error) {
        if (error instanceof Fenced) return;
        log.error({ ...fields(work), err: error }, 'a turn could not be ended; trying again');
        await rest(tries++);
      }
    }
    await abandon(work, meter);
  }

  async function abandon(work: TurnWork, meter: Meter): Promise<void> {
    try {
      await store.abandon(claim, work.id, meter.fresh());
    } catch (error) {
      log.warn({ ...fields(work), err: error }, 'a turn could not be put back; the next start recovers it');
    }
  }

  /** Answers the turns that the commit has started, each with a slot. */
  async function commit(work: TurnWork, result: FinishedTurn, meter: Meter): Promise<TurnWork[]> {
    let { outcome } = result;
    for (let replans = 0; replans < MAX_REPLANS; replans++) {
      // Its own slot goes on to the next turn; a few more are taken for a hand-over to several.
      const extra = aborting() ? 0 : slots.take(Math.min(FAN_OUT, await room()));
      const start = aborting() ? 0 : 1 + extra;
      const wanted = outcome;
      let unused = extra;
      try {
        const committed = await insist(() => store.commitTurn(claim, work, wanted, meter.fresh(), start));
        if (committed.ok) {
          meter.stored();
          const { started } = committed.changed.value;
          unused = 1 + extra - started.length;
          if (start > 0 && started.length === start) poked = true;
          deps.publish(committed.changed.events);
          return started;
        }
      } finally {
        slots.give(unused);
      }
      if (outcome.state === 'done' && result.replan) outcome = { ...outcome, plan: await result.replan() };
    }
    throw new Error('the roster changed at every try to store a reply');
  }

  /** Tries a write again while the disk is full or the database locked: nothing that was said is given up. */
  async function insist<T>(write: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        const isStorage = error instanceof AppError && (error.code === 'storage_full' || error.code === 'busy');
        if (!isStorage) throw error;
        if (shutdown.signal.aborted) throw new TurnAborted('shutdown');
        log.error({ chat: claim.chatId, err: error }, 'the store refused a write; trying again');
        await pause(STORE_RETRY_MS);
      }
    }
  }

  /** Ends early at the shutdown; what follows looks at the signal. */
  const pause = (ms: number): Promise<void> => clock.sleep(ms, shutdown.signal).catch(() => {});
  const rest = (tries: number): Promise<void> => pause(Math.min(MAX_REST_MS, FIRST_REST_MS * 2 ** Math.min(tries, 20)));

  async function drive(): Promise<void> {
    for (;;) {
      if (lost) return;
      if (poked && !aborting()) {
        poked = false;
        starting = startMore();
        await starting;
      }
      // Nothing is awaited between these checks and the wait, so that no wake-up is lost.
      if (lost || (poked && !aborting())) continue;
      if (running.size === 0 && !aborting() && !hungry) {
        if (await insist(() => store.release(claim))) return;
        // Work that neither runs nor starts was lost by a fault: it is taken up again, and never in a closed circle.
        if (fruitless === 1) deps.publish((await insist(() => store.reclaim(claim, MAX_CRASHES))).events);
        if (fruitless > 1) await rest(fruitless);
        fruitless++;
        poked = true;
        continue;
      }
      await new Promise<void>((resolve) => {
        wakeUp = resolve;
      });
    }
  }

  async function startMore(): Promise<void> {
    const wanted = await room();
    if (aborting()) return;
    const free = slots.take(wanted);
    let used = 0;
    try {
      if (free > 0) {
        const { value, events } = await insist(() => store.next(claim, free));
        used = value.length;
        launch(value);
        deps.publish(events);
      }
    } finally {
      slots.give(free - used);
    }
    if (used > 0) fruitless = 0;
    if (used === free && free < wanted) awaitSlot();
  }

  /** There may be more to start than the process has slots for. */
  function awaitSlot(): void {
    if (hungry) return;
    hungry = true;
    const again = () => {
      hungry = false;
      poked = true;
      wake();
    };
    slots.freed().then(again, again);
  }

  /** Drives until the chat is released or lost. A fault is logged and tried again: the chat must not hang. */
  async function supervise(): Promise<void> {
    for (;;) {
      try {
        return await drive();
      } catch (error) {
        if (shutdown.signal.aborted) return;
        if (error instanceof Fenced || (error instanceof AppError && error.code === 'not_found')) {
          for (const entry of running.values()) entry.controller.abort(new TurnAborted('fenced'));
          return;
        }
        log.error({ chat: claim.chatId, err: error }, 'a chat’s runner met a fault; it goes on after a rest');
        poked = true;
        await rest(fruitless++);
      }
    }
  }

  const fields = (work: TurnWork) => ({ world: work.worldId, chat: work.chatId, turn: work.id, agent: work.agentId });

  return {
    claim,
    done: supervise(),
    poke() {
      poked = true;
      wake();
    },
    async abortAll(why, settle) {
      if (why === 'shutdown') shutdown.abort();
      else stops++;
      try {
        let underWay = starting?.catch(() => {}); // the driver has the error
        while (running.size > 0 || underWay) {
          const entries = [...running.values()];
          for (const entry of entries) entry.controller.abort(new TurnAborted(why));
          await Promise.all([underWay, ...entries.map((entry) => entry.ended)]);
          underWay = undefined;
        }
        await settle?.();
      } finally {
        if (why === 'shutdown') lost = true;
        else stops--;
        poked = true;
        wake();
      }
    },
    live: () => [...running.values()].map((entry) => entry.live),
  };
}
