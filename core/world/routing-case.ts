/** Short notation for routing tests. */

import type { Sender, WakeReason } from '../protocol/entities.ts';
import { AgentId } from '../protocol/ids.ts';
import { type CompiledRoster, compileRoster, type RosterAgent } from './mentions.ts';
import { type RouteInput, route } from './router.ts';

export interface CaseOptions {
  settings?: Partial<RouteInput['settings']>;
  /** An agent's id, or `human`. */
  repliesTo?: string | undefined;
  wokenBy?: WakeReason;
}

/** Rows of `{id, name, displayName?, status?, autoReply?}`. */
export function rosterOf(rows: unknown): CompiledRoster {
  const agents = (rows as (Partial<RosterAgent> & { id: string; name: string })[]).map(
    (row): RosterAgent => ({ status: 'active', autoReply: true, ...row, id: AgentId.parse(row.id) }),
  );
  return compileRoster(agents);
}

/** `human`, `world`, `system`, `tool` or `agent:ID`. */
export function senderOf(notation: string): Sender {
  const [kind = '', id = kind] = notation.split(':');
  return { kind: kind as Sender['kind'], id, name: id };
}

/** Routes one message; `woke` and `ignored` are sorted lists of `name:reason`. */
export function routeCase(roster: CompiledRoster, sender: string, content: string, options: CaseOptions = {}) {
  const { repliesTo } = options;
  const result = route({
    content,
    sender: senderOf(sender),
    roster,
    settings: { mainAgent: null, humanMentions: 'line', agentBroadcasts: false, ...options.settings },
    replyTo: repliesTo === undefined ? undefined : senderOf(repliesTo === 'human' ? 'human' : `agent:${repliesTo}`),
    wokenBy: options.wokenBy,
  });
  return {
    woke: result.woke.map(({ agentId, reason }) => `${agentId}:${reason}`).sort(),
    ignored: result.ignored.map(({ text, reason }) => `${text}:${reason}`).sort(),
    published: result.published,
  };
}
