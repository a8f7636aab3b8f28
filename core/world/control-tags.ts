import { findRegions } from './regions.ts';
import { type VisibleText, visibleText } from './visible-text.ts';

export type StopWord = 'STOP' | 'DONE' | 'PASS';

/** A control tag outside code, quotes and comments. Positions are of the original text, without the blanks after it. */
export type ControlTag =
  | { kind: 'stop'; word: StopWord; start: number; end: number }
  | { kind: 'to'; list: string; start: number; end: number };

export interface Stripped {
  tags: readonly ControlTag[];
  /** What stays: the text itself where it has no tag, otherwise trimmed; '' where nothing can be seen. */
  published: string;
  /** `published` without its format characters. */
  visible: VisibleText;
  /** Position in the original of a position in `published`. */
  originalOf(index: number): number;
}

/** No two neighbours can match the same character, so a failed try costs one walk to the next `<`. */
const TAG =
  /<[^\S\r\n]*world[^\S\r\n]*>[^\S\r\n]*(?:(stop|done|pass)[^\S\r\n]*|to[^\S\r\n]*:([^<\r\n]*))<[^\S\r\n]*\/[^\S\r\n]*world[^\S\r\n]*>/gi;
/** A blanked comment inside a tag is white space, but may have spanned lines. */
const BREAK = /[\r\n]/;
const SEEN = /\S/;
const MAY_HOLD_TAG = /<[^\S\r\n]*world/i;

/** Removes the honoured control tags in one pass; what is left is not searched again. Linear. */
export function stripControlTags(original: string): Stripped {
  const visible = visibleText(original);
  const whole = { tags: [], published: original, visible, originalOf: same };
  if (!SEEN.test(visible.text)) return { ...whole, published: '', visible: visibleText('') };
  if (!visible.text.includes('<') || !MAY_HOLD_TAG.test(visible.text)) return whole;
  const found = findTags(visible.text);
  if (found.length === 0) return whole;
  const tags = found.map((tag) => ({ ...tag, start: visible.startOf(tag.start), end: visible.endOf(tag.end) }));
  return { tags, ...cut(original, tags) };
}

function findTags(text: string): ControlTag[] {
  const { masked, code, lines } = findRegions(text);
  const tags: ControlTag[] = [];
  let line = 0;
  let region = 0;
  for (const match of masked.matchAll(TAG)) {
    const start = match.index;
    const end = start + match[0].length;
    while ((lines[line + 1]?.start ?? Number.POSITIVE_INFINITY) <= start) line += 1;
    while ((code[region + 1] ?? Number.POSITIVE_INFINITY) <= start) region += 2;
    const touchesCode = (code[region] ?? Number.POSITIVE_INFINITY) < end;
    if (lines[line]?.quote || touchesCode || BREAK.test(text.slice(start, end))) continue;
    const word = match[1]?.toUpperCase();
    if (word === 'STOP' || word === 'DONE' || word === 'PASS') tags.push({ kind: 'stop', word, start, end });
    else tags.push({ kind: 'to', list: match[2] ?? '', start, end });
  }
  return tags;
}

function cut(original: string, tags: readonly ControlTag[]): Pick<Stripped, 'published' | 'visible' | 'originalOf'> {
  const parts: string[] = [];
  /** Start of each kept part: in the joined text, in the original. */
  const joined: number[] = [];
  const origins: number[] = [];
  let at = 0;
  let length = 0;
  const keep = (end: number): void => {
    if (end <= at) return;
    parts.push(original.slice(at, end));
    joined.push(length);
    origins.push(at);
    length += end - at;
  };
  for (const tag of tags) {
    keep(tag.start);
    at = tag.end;
    while (original[at] === ' ' || original[at] === '\t') at += 1;
  }
  keep(original.length);
  const rest = parts.join('');
  const lead = rest.length - rest.trimStart().length;
  const trimmed = rest.trim();
  const originalOf = (index: number): number => {
    const position = index + lead;
    const part = lastAtMost(joined, position);
    return (origins[part] ?? 0) + position - (joined[part] ?? 0);
  };
  const published = SEEN.test(visibleText(trimmed).text) ? trimmed : '';
  return { published, visible: visibleText(published), originalOf };
}

function same(index: number): number {
  return index;
}

function lastAtMost(sorted: readonly number[], value: number): number {
  let low = 0;
  let high = sorted.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((sorted[middle] ?? 0) <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}
