import type { Ids, Log, MessageDraft, TurnOutcome, TurnWork } from '../ports.ts';
import type { Sender, Usage, WorldAgent } from '../protocol/entities.ts';
import { AppError, ModelError } from '../protocol/errors.ts';
import type { MessageId } from '../protocol/ids.ts';
import { type Breach, BudgetReached, breachText, holdAtBudget } from './budget.ts';
import type { Live } from './live.ts';

/** Why a turn was aborted; the reason of its signal. */
export class TurnAborted extends Error {
  override readonly name = 'TurnAborted';
  readonly why: 'stopped' | 'timeout' | 'shutdown' | 'fenced';
  constructor(why: TurnAborted['why']) {
    super(`turn aborted: ${why}`);
    this.why = why;
  }
}

interface OutcomeDeps {
  ids: Ids;
  log: Log;
}

/** The agent as the author of its message. */
export const senderOf = (agent: WorldAgent): Sender => ({
  kind: 'agent',
  id: agent.id,
  name: agent.displayName ?? agent.name,
});

/** What was said before a turn was cut off; it routes nowhere. */
export function partialMessage(
  deps: OutcomeDeps,
  work: TurnWork,
  replyTo: MessageId,
  content: string,
  status: 'failed' | 'stopped',
  usage: Usage,
): { message?: MessageDraft } {
  if (content.trim() === '') return {};
  return {
    message: {
      id: deps.ids.make('m') as MessageId,
      sender: senderOf(work.agent),
      content,
      replyTo,
      turnId: work.id,
      usage,
      status,
    },
  };
}

export interface Failing {
  live: Live;
  /** Text of earlier executions, which is not in `live`. */
  replayed: string;
  usage: Usage;
  signal: AbortSignal;
}

/** How a turn ends that was aborted or failed. Rethrows an abort that leaves the turn to others. */
export function failure(deps: OutcomeDeps, work: TurnWork, failing: Failing, error: unknown): TurnOutcome {
  const { live, signal } = failing;
  const aborted = signal.aborted ? (signal.reason as unknown) : error;
  live.end();
  const said = [failing.replayed, live.text()].filter((text) => text !== '').join('\n\n');
  const partial = (status: 'failed' | 'stopped') =>
    partialMessage(deps, work, work.trigger.messageId, said, status, failing.usage);
  if (aborted instanceof TurnAborted) {
    if (aborted.why === 'shutdown' || aborted.why === 'fenced') throw aborted;
    if (aborted.why === 'stopped') {
      return { state: 'stopped', error: { code: 'stopped', message: 'stopped by a person' }, ...partial('stopped') };
    }
  }
  if (error instanceof BudgetReached && !signal.aborted) {
    return { ...refused(work, error.breach), ...partial('failed') };
  }
  const cause =
    aborted instanceof TurnAborted
      ? { code: 'turn_timeout', message: 'the turn took longer than its time limit' }
      : error instanceof AppError
        ? { code: error.code, message: error.message }
        : { code: 'internal', message: 'an unexpected fault ended the turn; the server’s log has the details' };
  const fields = { world: work.worldId, chat: work.chatId, turn: work.id, agent: work.agentId, code: cause.code };
  if (error instanceof AppError || aborted instanceof TurnAborted)
    deps.log.warn(fields, `turn failed: ${cause.message}`);
  else deps.log.error({ ...fields, err: error }, 'turn failed by a fault');
  const tried = error instanceof ModelError && error.retryable ? ', also after trying again' : '';
  return {
    state: 'failed',
    error: cause,
    ...partial('failed'),
    notice: {
      id: deps.ids.make('m') as MessageId,
      sender: { kind: 'system', id: 'system', name: 'system' },
      // The part that was said carries what the turn used; without one the notice does.
      ...(said.trim() === '' && failing.usage.calls > 0 ? { usage: failing.usage } : {}),
      content: `${work.agent.displayName ?? work.agent.name} could not answer: ${cause.message.replace(/[.\s]+$/u, '')}${tried}${/[?!]$/u.test(cause.message) && tried === '' ? '' : '.'}`,
      notice: { kind: 'turn_failed', turnId: work.id, agentId: work.agentId, error: cause.code },
      status: 'complete',
    },
  };
}

/** A turn whose next call could go beyond a budget: the room hears of it, and `continue` wakes the agent again. */
function refused(work: TurnWork, breach: Breach): Extract<TurnOutcome, { state: 'failed' | 'stopped' }> {
  const text = breachText(breach, senderOf(work.agent).name);
  const { agentId, hop, from } = work;
  const { messageId, seq, reason } = work.trigger;
  return {
    state: 'failed',
    error: { code: 'limit', message: text },
    atBudget: (ledger) => holdAtBudget(ledger, breach, { messageId, seq, agentId, reason, hop, from }, text),
  };
}
