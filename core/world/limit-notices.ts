import type { LimitNotice } from '../ports.ts';
import type { LimitName, Sender, WorldSettings } from '../protocol/entities.ts';
import type { AgentId } from '../protocol/ids.ts';
import type { CompiledRoster } from './mentions.ts';

export type LimitSettings = Pick<WorldSettings, 'turnLimit' | 'hopLimit' | 'pairLimit' | 'chatTurnLimit'>;

/** One wake that a limit held back, and how far the limit was used. */
export interface LimitHit {
  limit: keyof LimitSettings;
  used: number;
  max: number;
  agentId: AgentId;
}

export interface NoticeContext {
  roster: CompiledRoster;
  sender: Sender;
  settings: LimitSettings;
}

const MAX_NAMES = 5;

/** One notice for each limit that the room has not been told of, whatever the number of agents. */
export function limitNotices(
  hits: readonly LimitHit[],
  told: readonly LimitName[],
  input: NoticeContext,
): LimitNotice[] {
  const byLimit = new Map<LimitHit['limit'], LimitHit[]>();
  for (const hit of hits) {
    const group = byLimit.get(hit.limit);
    if (group) group.push(hit);
    else byLimit.set(hit.limit, [hit]);
  }
  return [...byLimit].flatMap(([limit, group]): LimitNotice[] => {
    const first = group[0];
    if (!first || told.includes(limit)) return [];
    const used = Math.max(...group.map((hit) => hit.used));
    const agent = group.length === 1 ? { agentId: first.agentId } : {};
    return [{ limit, used, max: first.max, ...agent, text: noticeText(group, used, first.max, input) }];
  });
}

function noticeText(
  group: readonly LimitHit[],
  used: number,
  max: number,
  { roster, sender, settings }: NoticeContext,
): string {
  const limit = group[0]?.limit ?? 'turnLimit';
  const nameOf = (id: string): string => roster.byId.get(id)?.name ?? id;
  const names = listNames(group.map(({ agentId }) => nameOf(agentId)));
  const more = settings[limit] ?? 0;
  const start = 'a message from a person starts the count again.';
  switch (limit) {
    case 'turnLimit':
      return `Turn limit reached: ${names} used ${used} of ${max} turns since the last message from a person. Continue grants every agent ${more} more; ${start}`;
    case 'hopLimit':
      return `Hop limit reached: ${used} of ${max} agent messages followed one another, so ${names} was not woken. Continue allows ${more} more; ${start}`;
    case 'pairLimit':
      return `Pair limit reached: ${nameOf(sender.id)} and ${names} exchanged ${used} of ${max} messages within 60 s and now rest for 60 s. Continue ends the rest and allows ${more} more; ${start}`;
    case 'chatTurnLimit':
      return `Chat turn limit reached: agents took ${used} of ${max} turns in this chat since the last message from a person, so it pauses. Continue grants ${more} more; ${start}`;
  }
}

function listNames(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES);
  const rest = names.length - shown.length;
  if (rest > 0) return `${shown.join(', ')} and ${rest} more`;
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}
