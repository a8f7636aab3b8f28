import type { Ids, TurnOutcome, TurnWork } from '../ports.ts';
import type { Usage } from '../protocol/entities.ts';
import type { MessageId } from '../protocol/ids.ts';

/**
 * How a turn may end whose end could not be written, in the order to try: as it was, failed with what was said, and,
 * should that be what cannot be stored, without. `outcome` is null where the fault came before there was one.
 */
export function faultOutcomes(ids: Ids, work: TurnWork, outcome: TurnOutcome | null, usage: Usage): TurnOutcome[] {
  const error = { code: 'internal', message: 'an unexpected fault ended the turn; the server’s log has the details' };
  const notice = {
    id: ids.make('m') as MessageId,
    sender: { kind: 'system', id: 'system', name: 'system' },
    content: `${work.agent.displayName ?? work.agent.name} could not answer: ${error.message}.`,
    notice: { kind: 'turn_failed', turnId: work.id, agentId: work.agentId, error: error.code },
    status: 'complete',
  } as const;
  const said = outcome && 'message' in outcome ? outcome.message : undefined;
  return [
    ...(outcome ? [outcome] : []),
    ...(said ? [{ state: 'failed', error, message: { ...said, status: 'failed' }, notice } as const] : []),
    // What was said carries what the turn used; without it the notice does.
    { state: 'failed', error, notice: usage.calls > 0 ? { ...notice, usage } : notice },
  ];
}
