import type { Turn, WorldAgent } from '../../../core/protocol/entities.ts';
import type { LiveTurn } from './live-text.ts';
import type { Room } from './room.ts';

export type AgentActivity = 'idle' | 'queued' | 'thinking' | 'writing' | 'waiting' | 'silent' | 'failed' | 'stopped';

export interface AgentState {
  readonly activity: AgentActivity;
  /** Why it failed, or why the provider is asked again. */
  readonly reason: string | null;
  /** Turns that wait for this agent beside the one that runs. */
  readonly queued: number;
}

const IDLE: AgentState = { activity: 'idle', reason: null, queued: 0 };
const ENDINGS: Partial<Record<Turn['state'], AgentActivity>> = {
  silent: 'silent',
  failed: 'failed',
  stopped: 'stopped',
};

/** What each agent does in the open chat. */
export function agentStates(
  agents: readonly WorldAgent[],
  room: Room | null,
  live: ReadonlyMap<string, LiveTurn>,
): ReadonlyMap<string, AgentState> {
  const byAgent = new Map<string, Turn[]>();
  for (const turn of room?.turns.values() ?? []) {
    const turns = byAgent.get(turn.agentId);
    if (turns) turns.push(turn);
    else byAgent.set(turn.agentId, [turn]);
  }
  return new Map(agents.map((agent) => [agent.id as string, stateOf(byAgent.get(agent.id) ?? [], live)]));
}

function stateOf(turns: readonly Turn[], live: ReadonlyMap<string, LiveTurn>): AgentState {
  const queued = turns.filter((turn) => turn.state === 'queued').length;
  const running = turns.find((turn) => turn.state === 'running');
  if (running) {
    const said = live.get(running.id);
    return { activity: said?.text ? 'writing' : 'thinking', reason: said?.retry ?? null, queued };
  }
  if (turns.some((turn) => turn.state === 'waiting')) return { activity: 'waiting', reason: null, queued };
  if (queued > 0) return { activity: 'queued', reason: null, queued: queued - 1 };
  const last = lastEnded(turns);
  const ending = last && ENDINGS[last.state];
  return ending ? { activity: ending, reason: last.error?.message ?? null, queued: 0 } : IDLE;
}

function lastEnded(turns: readonly Turn[]): Turn | undefined {
  let last: Turn | undefined;
  for (const turn of turns) if (!last || (turn.endedAt ?? '') >= (last.endedAt ?? '')) last = turn;
  return last;
}

/** Whether anything runs or waits to run. */
export function isBusy(room: Room | null): boolean {
  for (const turn of room?.turns.values() ?? []) if (turn.state === 'queued' || turn.state === 'running') return true;
  return false;
}
