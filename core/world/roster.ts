import type { WorldAgent } from '../protocol/entities.ts';
import { type AgentId, foldName } from '../protocol/ids.ts';
import { isBlank, isIdeograph, isJoint, isLineBreak, isUnspaced, isWordAt, joinsLeftAt } from './letters.ts';

export type RosterAgent = Pick<WorldAgent, 'id' | 'name' | 'status' | 'autoReply'> & {
  readonly displayName?: string | null | undefined;
};

/** What a name stands for: one agent, everybody, the person, the world itself, or nobody known. */
export type Named =
  | { type: 'agent'; agentId: AgentId }
  | { type: 'everyone' }
  | { type: 'human' }
  | { type: 'world' }
  | { type: 'unknown' };

/** A radix tree over folded spellings, so that reading a name costs its own length and no more. */
interface Node {
  label: string;
  named: Named | null;
  next: Map<number, Node> | null;
}

/** Made once per roster; never changed after. */
export interface CompiledRoster {
  /** In the world's order. */
  readonly agents: readonly RosterAgent[];
  readonly byId: ReadonlyMap<string, RosterAgent>;
  /** Every agent's folded spellings, in the world's order, for suggestions. */
  readonly spellings: readonly { fold: string; agentId: AgentId }[];
  /** The most commas that one name has: how many pieces of a `TO` list may be one name. */
  readonly maxCommas: number;
  readonly root: Readonly<Node>;
}

const RESERVED: readonly [Named, readonly string[]][] = [
  [{ type: 'everyone' }, ['all', 'everyone', 'here']],
  [{ type: 'human' }, ['human', 'user', 'you']],
  [{ type: 'world' }, ['world', 'system']],
];
const UNKNOWN: Named = { type: 'unknown' };
/** Marks of one letter that are read together; Unicode's stream-safe format allows 30. */
const MAX_MARKS = 30;

/** Reserved words beat ids, ids beat names, names beat display names, then the world's order decides. */
export function compileRoster(agents: readonly RosterAgent[]): CompiledRoster {
  const root: Node = { label: '', named: null, next: null };
  for (const [named, words] of RESERVED) for (const word of words) insert(root, word, named);
  const named = new Map(agents.map((agent): [AgentId, Named] => [agent.id, { type: 'agent', agentId: agent.id }]));
  const spellings: { fold: string; agentId: AgentId }[] = [];
  const folds = agents.map((agent) => [agent.id, agent.name, agent.displayName ?? ''].map((s) => foldName(s.trim())));
  for (const rank of [0, 1, 2]) {
    agents.forEach((agent, index) => {
      const fold = folds[index]?.[rank];
      if (fold) insert(root, fold, named.get(agent.id) ?? UNKNOWN);
    });
  }
  agents.forEach((agent, index) => {
    for (const fold of new Set(folds[index])) if (fold) spellings.push({ fold, agentId: agent.id });
  });
  const maxCommas = folds.flat().reduce((most, fold) => Math.max(most, fold.match(/[,，、،]/g)?.length ?? 0), 0);
  return { agents, byId: new Map(agents.map((agent) => [agent.id, agent])), spellings, maxCommas, root };
}

/** The first to take a spelling keeps it. */
function insert(root: Node, key: string, named: Named): void {
  let node = root;
  let at = 0;
  while (at < key.length) {
    const unit = key.charCodeAt(at);
    const child = node.next?.get(unit);
    if (!child) {
      node.next ??= new Map();
      node.next.set(unit, { label: key.slice(at), named, next: null });
      return;
    }
    const shared = sharedLength(child.label, key, at);
    if (shared < child.label.length) {
      const rest: Node = { label: child.label.slice(shared), named: child.named, next: child.next };
      child.label = child.label.slice(0, shared);
      child.named = null;
      child.next = new Map([[rest.label.charCodeAt(0), rest]]);
    }
    at += shared;
    node = child;
  }
  node.named ??= named;
}

function sharedLength(label: string, key: string, from: number): number {
  let length = 0;
  while (length < label.length && label.charCodeAt(length) === key.charCodeAt(from + length)) length += 1;
  return length;
}

export interface NameMatch {
  named: Named;
  /** Position after the name's last character. */
  end: number;
}

/**
 * The longest known name at `start` that ends at a word boundary before `limit`; else the unknown name
 * there; null where no name stands. `text` is free of format characters. Costs the name's length.
 */
export function matchName(text: string, start: number, limit: number, roster: CompiledRoster): NameMatch | null {
  const known = longestKnown(text, start, limit, roster.root);
  if (known) return known;
  const end = unknownEnd(text, start, limit);
  return end > start ? { named: UNKNOWN, end } : null;
}

function longestKnown(text: string, start: number, limit: number, root: Readonly<Node>): NameMatch | null {
  let node: Readonly<Node> = root;
  let depth = root.label.length;
  let best: NameMatch | null = null;
  let at = start;
  while (at < limit && !isLineBreak(text.charCodeAt(at))) {
    const end = pieceEnd(text, at, limit);
    const folded = foldPiece(text, at, end);
    for (let i = 0; i < folded.length; i += 1) {
      const unit = folded.charCodeAt(i);
      if (depth === node.label.length) {
        const child = node.next?.get(unit);
        if (!child) return best;
        node = child;
        depth = 1;
      } else {
        if (node.label.charCodeAt(depth) !== unit) return best;
        depth += 1;
      }
    }
    if (depth === node.label.length && node.named && endsName(text, at, end, limit)) best = { named: node.named, end };
    at = end;
  }
  return best;
}

/** A character and the marks on it: never cut, so that a decomposed letter equals the composed one. */
function pieceEnd(text: string, start: number, limit: number): number {
  const point = text.codePointAt(start) ?? 0;
  let end = start + (point > 0xffff ? 2 : 1);
  for (let marks = 0; marks < MAX_MARKS && end < limit && joinsLeftAt(text, end); marks += 1) {
    end += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1;
  }
  return end;
}

function foldPiece(text: string, start: number, end: number): string {
  const code = text.charCodeAt(start);
  if (end - start === 1) {
    if (code === 95 || (code < 128 && isBlank(code))) return '-';
    if (code >= 65 && code <= 90) return String.fromCharCode(code + 32);
    if (code < 128 || isIdeograph(code)) return text.charAt(start);
  }
  return foldName(text.slice(start, end));
}

/** Whether a name whose last character spans `last`..`end` may end there. */
function endsName(text: string, last: number, end: number, limit: number): boolean {
  if (end >= limit) return true;
  const next = isJoint(text.charCodeAt(end)) ? end + 1 : end;
  if (next >= limit || !isWordAt(text, next)) return true;
  return isUnspaced(String.fromCodePoint(text.codePointAt(last) ?? 0));
}

/** Letters, marks and digits with single hyphens and underscores inside. */
function unknownEnd(text: string, start: number, limit: number): number {
  let end = start;
  while (end < limit) {
    const from = end > start && isJoint(text.charCodeAt(end)) ? end + 1 : end;
    if (from >= limit || !isWordAt(text, from)) break;
    end = from + ((text.codePointAt(from) ?? 0) > 0xffff ? 2 : 1);
  }
  return end;
}

/** What a whole string names, or null: nothing before it, nothing after it. */
export function lookupName(name: string, roster: CompiledRoster): Named | null {
  const folded = foldName(name.trim());
  let node: Readonly<Node> = roster.root;
  let at = 0;
  while (at < folded.length) {
    const child = node.next?.get(folded.charCodeAt(at));
    if (!child || !folded.startsWith(child.label, at)) return null;
    at += child.label.length;
    node = child;
  }
  return at > 0 ? node.named : null;
}

/**
 * What to type after an at-sign so that it addresses this agent whatever words follow. A comma ends a
 * spelling that is the beginning of somebody else's longer name.
 */
export function addressToken(agent: Pick<RosterAgent, 'id' | 'name' | 'displayName'>, roster: CompiledRoster): string {
  const spellings = [agent.name, agent.id, agent.displayName ?? ''].map((spelling) => spelling.trim());
  const good = spellings.filter((spelling) => addresses(spelling, agent.id, roster));
  const free = good.find((spelling) => !isExtended(spelling, roster));
  return free ?? (good[0] === undefined ? agent.id : `${good[0]},`);
}

function addresses(spelling: string, agentId: AgentId, roster: CompiledRoster): boolean {
  const text = `${spelling} `;
  const match = matchName(text, 0, text.length, roster);
  return match?.end === spelling.length && match.named.type === 'agent' && match.named.agentId === agentId;
}

/** Whether a longer known name begins with this spelling and a space. */
function isExtended(spelling: string, roster: CompiledRoster): boolean {
  const prefix = foldName(`${spelling} `);
  let node: Readonly<Node> = roster.root;
  let at = 0;
  while (at < prefix.length) {
    const child = node.next?.get(prefix.charCodeAt(at));
    if (!child) return false;
    const shared = sharedLength(child.label, prefix, at);
    at += shared;
    if (at < prefix.length && shared < child.label.length) return false;
    node = child;
  }
  return true;
}
