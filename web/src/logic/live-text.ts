import type { LiveEvent } from '../../../core/protocol/events.ts';

/** What a running turn has said so far. Never stored; the final message replaces it. */
export interface LiveTurn {
  readonly turnId: string;
  readonly chatId: string;
  readonly agentId: string;
  readonly runId: string;
  readonly index: number;
  readonly text: string;
  readonly reasoning: string;
  /** Why the provider is asked again, until it answers. */
  readonly retry: string | null;
  /** Executions that another one has replaced. */
  readonly oldRuns: readonly string[];
}

const MAX_OLD_RUNS = 20;

/** The turn after a live event; the same object where the event says nothing new. Undefined stays undefined for a piece without its beginning. */
export function reduceLive(live: LiveTurn | undefined, event: LiveEvent): LiveTurn | undefined {
  const { turnId, agentId } = event.data;
  if (event.type === 'turn.retrying') {
    const base = live ?? start(turnId, event.chat, agentId, '');
    return { ...base, retry: event.data.message };
  }
  const { runId, index, text } = event.data;
  if (live?.oldRuns.includes(runId)) return live;
  const field = event.type === 'message.delta' ? 'text' : 'reasoning';
  if (live?.runId !== runId) {
    if (index !== 0) return live;
    const oldRuns =
      live && live.runId !== '' ? [...live.oldRuns, live.runId].slice(-MAX_OLD_RUNS) : (live?.oldRuns ?? []);
    return { ...start(turnId, event.chat, agentId, runId), oldRuns, [field]: text };
  }
  // Index 0 carries all the text so far; the numbers go on from wherever the sender stands.
  if (index === 0) return { ...live, index: 0, retry: null, [field]: text };
  if (index <= live.index) return live;
  return { ...live, index, retry: null, [field]: live[field] + text };
}

function start(turnId: string, chatId: string, agentId: string, runId: string): LiveTurn {
  return { turnId, chatId, agentId, runId, index: 0, text: '', reasoning: '', retry: null, oldRuns: [] };
}
