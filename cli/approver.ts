import type { Approval } from '../core/protocol/entities.ts';
import type { AnswerApproval } from '../core/protocol/requests.ts';
import { noTo, yesTo } from './approval-answer.ts';
import type { Client } from './client.ts';

/** `wait`: somebody else at the server decides. */
export type ApproveMode = 'yes' | 'no' | 'ask' | 'wait';

/** The usual time limit of an approval that `parley run` leads to; a world's own limit goes before it. */
export const RUN_APPROVAL_MS = 5 * 60_000;
const TIMEOUT_WORDS = 'nobody answered in time';

const GRACE_MS = 5_000;

export interface ApproverOptions {
  client: Pick<Client, 'answer'>;
  mode: ApproveMode;
  /** Whether the approval belongs to what this run led to; others are left alone. */
  isOurs(approval: Approval): Promise<boolean>;
  /** Asks the person; rejects when the signal aborts. */
  ask(approval: Approval, signal: AbortSignal): Promise<AnswerApproval>;
  asked(approval: Approval): void;
  decided(approval: Approval): void;
  /** Calls back after `ms`, unless the returned function is called before. */
  after(ms: number, run: () => void): () => void;
  now(): number;
  signal: AbortSignal;
}

/** Decides what a run's agents ask for, one after another. An approval that another person decides meanwhile is let go. */
export function createApprover(options: ApproverOptions) {
  const { client, mode, signal } = options;
  const final = new Map<string, Approval>();
  const asked = new Map<string, AbortController>();
  const byOthers = new Map<string, Approval>();
  let queue: Promise<void> = Promise.resolve();
  let failure: { error: unknown } | null = null;
  let handled = 0;
  let told = 0;

  const settle = (approval: Approval) => {
    if (final.has(approval.id)) return;
    final.set(approval.id, approval);
    options.decided(approval);
  };

  const answerTo = async (approval: Approval, gone: AbortSignal): Promise<AnswerApproval> => {
    if (mode === 'yes') return yesTo(approval) ?? noTo(approval, 'a question of this kind cannot be answered with yes');
    if (mode === 'no') return noTo(approval);
    const late = new AbortController();
    const cancel = options.after(patience(approval, options.now()), () => late.abort());
    try {
      const either = AbortSignal.any([gone, late.signal]);
      return await (mode === 'ask' ? options.ask(approval, either) : untilAborted(either));
    } catch (error) {
      if (gone.aborted || !late.signal.aborted) throw error;
      return noTo(approval, TIMEOUT_WORDS);
    } finally {
      cancel();
    }
  };

  const handle = async (approval: Approval, elsewhere: AbortSignal) => {
    const gone = AbortSignal.any([elsewhere, signal]);
    if (signal.aborted || final.has(approval.id)) return;
    if (!(await options.isOurs(approval))) return;
    handled += 1;
    try {
      gone.throwIfAborted();
      options.asked(approval);
      settle((await client.answer(approval.worldId, approval.id, await answerTo(approval, gone))).approval);
    } catch (error) {
      if (!gone.aborted) throw error;
    }
    const other = byOthers.get(approval.id);
    if (other) settle(other);
  };

  return {
    /** Takes an approval in any state, as the chat's follower tells it. */
    see(approval: Approval): void {
      const known = asked.get(approval.id);
      if (approval.status !== 'pending') {
        byOthers.set(approval.id, approval);
        known?.abort();
        return;
      }
      if (known || byOthers.has(approval.id)) return;
      const controller = new AbortController();
      asked.set(approval.id, controller);
      queue = queue
        .then(() => handle(approval, controller.signal))
        .catch((error: unknown) => {
          failure ??= { error };
        });
    },
    /** Waits until all that was asked so far is decided. False: nothing was, since the last call. */
    async rest(): Promise<boolean> {
      await queue;
      if (failure) throw failure.error;
      const isNew = handled > told;
      told = handled;
      return isNew;
    },
    /** Every approval of this run that ended, in the order of the decisions. */
    decisions: (): readonly Approval[] => [...final.values()],
  };
}
export type Approver = ReturnType<typeof createApprover>;

/** The server ends one that has a time of its own; the grace lets it be first. */
function patience({ expiresAt }: Approval, nowMs: number): number {
  return expiresAt === undefined ? RUN_APPROVAL_MS : Math.max(0, Date.parse(expiresAt) - nowMs) + GRACE_MS;
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
