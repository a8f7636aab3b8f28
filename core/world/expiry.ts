import type { Approvals, Clock, Log } from '../ports.ts';
import type { Approval, Resolution } from '../protocol/entities.ts';
import type { StoredEvent } from '../protocol/events.ts';

/** After a failed look, and where a deadline is further away, the clock is asked again after this long. */
const MAX_WAIT_MS = 60_000;
const MIN_WAIT_MS = 10;

export interface ExpiryOut {
  publish(events: readonly StoredEvent[]): void;
  /** The approval's turn may go on. */
  wake(chat: string): void;
}

/** Ends approvals at their time limit, as a denial. */
export interface Expiry {
  /** Begins to watch; the first look finds what became due while no server ran. */
  start(out: ExpiryOut): void;
  /** A request with a time limit was stored: it may be the next one due. */
  notice(event: StoredEvent): void;
  /** Ends one approval where it is due; nothing happens where it is decided or has time left. */
  endIfDue(approval: Approval): Promise<void>;
  stop(): void;
}

export function openExpiry({ store, clock, log }: { store: Approvals; clock: Clock; log: Log }): Expiry {
  let out: ExpiryOut | null = null;
  /** When the next look is planned, and how to call it off. */
  let planned: { atMs: number; cancel: () => void } | null = null;

  async function end(approval: Approval): Promise<void> {
    const at = new Date(clock.now()).toISOString();
    const resolution: Resolution = { optionId: null, by: 'system', at, reason: 'timeout' };
    const changed = await store.decide(approval.worldId, approval.id, { status: 'expired', resolution });
    if (!changed) return;
    out?.publish(changed.events);
    out?.wake(approval.chatId);
  }

  async function look(): Promise<number | null> {
    const { due, nextMs } = await store.dueApprovals(clock.now());
    for (const approval of due) await end(approval);
    return nextMs;
  }

  function plan(atMs: number): void {
    if (!out || (planned && planned.atMs <= atMs)) return;
    planned?.cancel();
    const waitMs = Math.max(MIN_WAIT_MS, Math.min(MAX_WAIT_MS, atMs - clock.now()));
    const cancel = clock.after(waitMs, () => {
      planned = null;
      look().then(
        (nextMs) => plan(nextMs ?? clock.now() + MAX_WAIT_MS),
        (error: unknown) => {
          log.error({ err: error }, 'expired approvals could not be ended; trying again');
          plan(clock.now() + MAX_WAIT_MS);
        },
      );
    });
    planned = { atMs, cancel };
  }

  return {
    start(to) {
      out = to;
      plan(clock.now());
    },
    notice(event) {
      if (event.type !== 'approval.requested') return;
      const { expiresAt } = event.data.approval;
      if (expiresAt !== undefined) plan(Date.parse(expiresAt));
    },
    async endIfDue(approval) {
      const { status, expiresAt } = approval;
      if (status === 'pending' && expiresAt !== undefined && Date.parse(expiresAt) <= clock.now()) await end(approval);
    },
    stop() {
      planned?.cancel();
      planned = null;
      out = null;
    },
  };
}
