import type { Ids, Log, MessageDraft, TurnOutcome, TurnWork } from '../ports.ts';
import type { Sender, Usage, WorldAgent } from '../protocol/entities.ts';
import { AppError, ModelError } from '../protocol/errors.ts';
import type { MessageId } from '../protocol/ids.ts';
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

/** How a turn ends that was aborted or failed. Rethrows an abort that leaves the turn to others. */
export function failure(
  deps: OutcomeDeps,
  work: TurnWork,
  live: Live,
  usage: Usage,
  error: unknown,
  signal: AbortSignal,
): TurnOutcome {
  const aborted = signal.aborted ? (signal.reason as unknown) : error;
  live.end();
  const partial = (status: 'failed' | 'stopped') =>
    partialMessage(deps, work, work.trigger.messageId, live.text(), status, usage);
  if (aborted instanceof TurnAborted) {
    if (aborted.why === 'shutdown' || aborted.why === 'fenced') throw aborted;
    if (aborted.why === 'stopped') {
      return { state: 'stopped', error: { code: 'stopped', message: 'stopped by a person' }, ...partial('stopped') };
    }
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
      content: `${work.agent.displayName ?? work.agent.name} could not answer: ${cause.message.replace(/[.\s]+$/u, '')}${tried}${/[?!]$/u.test(cause.message) && tried === '' ? '' : '.'}`,
      notice: { kind: 'turn_failed', turnId: work.id, agentId: work.agentId, error: cause.code },
      status: 'complete',
    },
  };
}
