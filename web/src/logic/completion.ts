import type { WorldAgent } from '../../../core/protocol/entities.ts';
import { foldName } from '../../../core/protocol/ids.ts';
import { addressToken, type CompiledRoster } from '../../../core/world/mentions.ts';

/** What is being typed after an at-sign. */
export interface MentionQuery {
  /** Position of the at-sign. */
  readonly start: number;
  readonly typed: string;
}

export interface Suggestion {
  readonly key: string;
  /** What is put after the at-sign. */
  readonly token: string;
  readonly name: string;
  readonly note: string;
  readonly agent: WorldAgent | null;
}

const MAX_QUERY = 60;
const MAX_SUGGESTIONS = 8;
const BEFORE_AT = /[\p{Script=Latin}\p{N}@＠\\/]/u;

/** The mention that the caret stands in or right behind; null where none is being typed. */
export function queryAt(text: string, caret: number): MentionQuery | null {
  const from = Math.max(0, caret - MAX_QUERY);
  const near = text.slice(from, caret);
  const at = Math.max(near.lastIndexOf('@'), near.lastIndexOf('＠'));
  if (at < 0) return null;
  const typed = near.slice(at + 1);
  if (/[\n\r]|^\s|\s\s|[,.:;!?()[\]{}<>"`]/.test(typed)) return null;
  const before = text.charAt(from + at - 1);
  if (before !== '' && BEFORE_AT.test(before)) return null;
  return { start: from + at, typed };
}

/** Agents whose id, name or display name begins with what is typed, then those that have it in a later word. */
export function suggestionsFor(
  query: MentionQuery,
  agents: readonly WorldAgent[],
  roster: CompiledRoster,
): readonly Suggestion[] {
  const wanted = foldName(query.typed.trimEnd());
  const ranked = agents.flatMap((agent) => {
    const rank = Math.min(...[agent.name, agent.id, agent.displayName ?? ''].map((name) => rankOf(name, wanted)));
    return rank < 3 ? [{ agent, rank: rank + (agent.status === 'active' ? 0 : 0.5) }] : [];
  });
  ranked.sort((a, b) => a.rank - b.rank);
  const found = ranked.map(
    ({ agent }): Suggestion => ({
      key: agent.id,
      token: addressToken(agent, roster),
      name: agent.displayName ?? agent.name,
      note: agent.status === 'active' ? agent.description : 'muted',
      agent,
    }),
  );
  // A name that is typed out and is the beginning of no other needs no help: Enter sends.
  if (ranked.length === 1 && isNameOf(ranked[0]?.agent, wanted)) return [];
  if (agents.length > 1 && 'all'.startsWith(wanted)) {
    found.push({ key: '@all', token: 'all', name: 'all', note: 'everyone in this world', agent: null });
  }
  return found.slice(0, MAX_SUGGESTIONS);
}

function isNameOf(agent: WorldAgent | undefined, wanted: string): boolean {
  return (
    agent !== undefined && [agent.name, agent.id, agent.displayName ?? ''].some((name) => foldName(name) === wanted)
  );
}

function rankOf(name: string, wanted: string): number {
  if (name === '') return 3;
  const folded = foldName(name);
  if (folded.startsWith(wanted)) return 0;
  return folded.includes(`-${wanted}`) ? 1 : folded.includes(wanted) && wanted.length > 1 ? 2 : 3;
}

/** The text with the suggestion in place of the query, and where the caret goes. */
export function complete(
  text: string,
  caret: number,
  query: MentionQuery,
  suggestion: Suggestion,
): { text: string; caret: number } {
  const rest = text.slice(caret);
  const space = /^[\s,.:;!?]/.test(rest) ? '' : ' ';
  const head = `${text.slice(0, query.start)}@${suggestion.token}${space}`;
  return { text: head + rest, caret: head.length + (space === '' ? 1 : 0) };
}
