/**
 * The one parser of the mention grammar, for the router, the composer's highlighting and the command line.
 * Runs in a browser. Linear in the length of the message; the number of agents does not count.
 */
import { type ControlTag, type StopWord, stripControlTags } from './control-tags.ts';
import { characterBefore, isAtSign, isBlank, isComma, isUnspaced, isWordAt } from './letters.ts';
import { findRegions, type Line, type Regions } from './regions.ts';
import { type CompiledRoster, matchName, type Named } from './roster.ts';
import { findUrls, type UrlCursor } from './urls.ts';

export {
  addressToken,
  type CompiledRoster,
  compileRoster,
  lookupName,
  type Named,
  type RosterAgent,
} from './roster.ts';
export type { ControlTag, StopWord };

export interface Mention {
  /** `code` and `quote` are listed only where they name an agent. */
  kind: 'address' | 'reference' | 'code' | 'quote';
  named: Named;
  /** As published, from the at-sign to the end of the name. */
  text: string;
  /** In the text that was parsed, UTF-16 units; `end` is after the name. */
  start: number;
  end: number;
}

export interface ParsedMessage {
  /** The text minus control tags; '' where nothing can be seen. Unchanged where it has no tag. */
  published: string;
  tags: readonly ControlTag[];
  /** In the order of the text. */
  mentions: readonly Mention[];
  /** Nothing but mentions, the words and signs that join them, punctuation and emoji. */
  saysNothing: boolean;
}

const AT_SIGN = /[@＠]/g;
const GREETING = /(?:hey|hi|hello|to|dear)(?![\p{L}\p{M}\p{N}])/iuy;
const AND = /and(?![\p{L}\p{M}\p{N}])/iuy;
const POSSESSIVE = /['’＇]\p{L}/uy;

/** Reads a message; never throws. Mentions are read in what is left when the control tags are removed. */
export function parseMentions(text: string, roster: CompiledRoster): ParsedMessage {
  const { tags, published, visible, originalOf } = stripControlTags(text);
  const regions = needsRegions(visible.text) ? findRegions(visible.text) : null;
  const spans = regions ? findMentions(regions, roster) : [];
  const mentions = spans.map(({ kind, named, start, end }): Mention => {
    const from = visible.startOf(start);
    const to = visible.endOf(end);
    return { kind, named, text: published.slice(from, to), start: originalOf(from), end: originalOf(to - 1) + 1 };
  });
  return { published, tags, mentions, saysNothing: saysNothing(regions?.masked ?? visible.text, spans) };
}

function needsRegions(text: string): boolean {
  AT_SIGN.lastIndex = 0;
  return AT_SIGN.test(text) || text.includes('<!--');
}

type Span = Pick<Mention, 'kind' | 'named' | 'start' | 'end'>;

/** Where the walk over the at-signs stands. */
interface Walk {
  text: string;
  regions: Regions;
  roster: CompiledRoster;
  urls: UrlCursor;
  line: number;
  region: number;
  /** Where an at-sign of the current line opens it, once known. */
  opening: number;
  openingOfLine: number;
  /** End of the mention before, -1 where another at-sign broke the row; whether it belongs to the line's row. */
  previousEnd: number;
  previousInRow: boolean;
}

function findMentions(regions: Regions, roster: CompiledRoster): Span[] {
  const urls = findUrls(regions.masked, regions.code);
  const row = { opening: -1, openingOfLine: -1, previousEnd: -1, previousInRow: false };
  const walk: Walk = { text: regions.masked, regions, roster, urls, line: 0, region: 0, ...row };
  const spans: Span[] = [];
  let from = 0;
  for (;;) {
    AT_SIGN.lastIndex = from;
    if (!AT_SIGN.test(walk.text)) return spans;
    const at = AT_SIGN.lastIndex - 1;
    const span = readMention(walk, at);
    if (span && (span.kind === 'address' || span.kind === 'reference' || span.named.type === 'agent')) spans.push(span);
    // Without this a stretch of commas would be read again for each at-sign after it.
    if (!span) walk.previousEnd = -1;
    from = span ? span.end : at + 1;
  }
}

function readMention(walk: Walk, at: number): Span | null {
  const { text, regions, roster } = walk;
  const line = advanceLine(walk, at);
  while ((regions.code[walk.region + 1] ?? Number.POSITIVE_INFINITY) <= at) walk.region += 2;
  const codeStart = regions.code[walk.region] ?? text.length;
  const inCode = codeStart <= at;
  const limit = inCode ? (regions.code[walk.region + 1] ?? text.length) : codeStart;
  if (walk.urls.covers(at)) return null;
  const joined = walk.previousEnd >= 0 && joins(text, walk.previousEnd, at);
  if (!mayStand(text, at, joined)) return null;
  const match = matchName(text, at + 1, limit, roster);
  if (!match || isTaken(text, match.end)) return null;
  const inRow = opensLine(walk, line, at) || (joined && walk.previousInRow);
  walk.previousEnd = match.end;
  walk.previousInRow = inRow;
  const kind = line.quote ? 'quote' : inCode ? 'code' : inRow && match.named.type !== 'world' ? 'address' : 'reference';
  return { kind, named: match.named, start: at, end: match.end };
}

function advanceLine(walk: Walk, at: number): Line {
  const { lines } = walk.regions;
  while ((lines[walk.line + 1]?.start ?? Number.POSITIVE_INFINITY) <= at) walk.line += 1;
  return lines[walk.line] ?? { start: 0, body: 0, quote: false };
}

function opensLine(walk: Walk, line: Line, at: number): boolean {
  if (walk.openingOfLine !== walk.line) {
    walk.openingOfLine = walk.line;
    walk.opening = line.quote ? -1 : openingOf(walk.text, line.body);
  }
  return walk.opening === at;
}

/** Emphasis, greeting, emphasis around an optional comma, then the at-sign; -1 where the line opens otherwise. */
function openingOf(text: string, body: number): number {
  let at = skipEmphasis(text, body);
  GREETING.lastIndex = at;
  if (GREETING.test(text)) {
    at = skipEmphasis(text, GREETING.lastIndex);
    if (isComma(text.charAt(at))) at = skipEmphasis(text, at + 1);
    while (isBlank(text.charCodeAt(at))) at += 1;
    at = skipEmphasis(text, at);
  }
  return isAtSign(text.charCodeAt(at)) ? at : -1;
}

function skipEmphasis(text: string, start: number): number {
  let at = start;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code === 42 || code === 95) at += 1;
    else if (code === 126 && text.charCodeAt(at + 1) === 126) at += 2;
    else return at;
  }
}

/** Only spaces, commas, emphasis, `and`, `&`, `+` and `/` from the end of one mention to the next at-sign. */
function joins(text: string, from: number, to: number): boolean {
  let at = from;
  while (at < to) {
    const code = text.charCodeAt(at);
    const next = skipEmphasis(text, at);
    AND.lastIndex = at;
    if (next > at) at = next;
    else if (isBlank(code) || isComma(text.charAt(at)) || code === 38 || code === 43 || code === 47) at += 1;
    else if (AND.test(text)) at = AND.lastIndex;
    else return false;
  }
  return at === to;
}

/** Whether what stands directly before an at-sign lets it be a mention. */
function mayStand(text: string, at: number, joined: boolean): boolean {
  const before = characterBefore(text, at);
  if (before === '\\' || before === '@' || before === '＠') return false;
  if (before === '/') return joined;
  return before === '' || isUnspaced(before) || !isWordAt(before, 0);
}

/** Whether what follows a name directly makes it something else: a handle, a call, a path, a possessive, a URL. */
function isTaken(text: string, end: number): boolean {
  const code = text.charCodeAt(end);
  if (isAtSign(code) || code === 40) return true;
  if (code === 47 || code === 46) return isWordAt(text, end + 1);
  if (code === 58) return text.startsWith('://', end);
  POSSESSIVE.lastIndex = end;
  return POSSESSIVE.test(text);
}

/** Stops at the first word, so that ordinary text costs next to nothing. */
function saysNothing(text: string, spans: readonly Span[]): boolean {
  let at = 0;
  for (const span of [...spans, { start: text.length, end: text.length, kind: 'reference' }]) {
    if (span.kind === 'code' || span.kind === 'quote') return false;
    if (hasWords(text, at, span.start)) return false;
    at = span.end;
  }
  return true;
}

function hasWords(text: string, from: number, to: number): boolean {
  let at = from;
  while (at < to) {
    AND.lastIndex = at;
    if (isKeycap(text, at)) at += 2;
    else if (!isWordAt(text, at)) at += 1;
    else if (AND.test(text)) at = AND.lastIndex;
    else return true;
  }
  return false;
}

/** A digit under U+20E3 is an emoji. */
function isKeycap(text: string, at: number): boolean {
  return text.charCodeAt(at + 1) === 0x20e3;
}
