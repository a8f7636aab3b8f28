import { isBlank, isLineBreak } from './letters.ts';

/** How a message divides into lines, code, quotes and comments. Positions are of the text given to `findRegions`. */
export interface Regions {
  /** The text with every closed comment blanked out, its line breaks too; as long as the text. */
  masked: string;
  /** Start and end of each fenced block and inline code span, flat and ascending. */
  code: readonly number[];
  lines: readonly Line[];
}

export interface Line {
  start: number;
  /** After white space, comments, one list marker and white space. */
  body: number;
  quote: boolean;
}

const SPECIAL = /[`<\r\n]/g;

/** Where a scan stands, and the lookups that keep it linear. */
interface Scan {
  text: string;
  /** Where the last comment end stands: an opening after it never closes. */
  lastClose: number;
  code: number[];
  comments: number[];
  runs: BacktickRuns | null;
}

/** The runs of backticks from some place to the end of one line, by length, each list read once from the front. */
interface BacktickRuns {
  until: number;
  byLength: Map<number, { starts: number[]; next: number }>;
}

/** Reads a text (without format characters) line by line; linear in its length. */
export function findRegions(text: string): Regions {
  const scan: Scan = { text, lastClose: text.lastIndexOf('-->'), code: [], comments: [], runs: null };
  const lines: Line[] = [];
  let at = 0;
  while (at < text.length) {
    const body = skipMarker(scan, at);
    const quote = text.charCodeAt(body) === 62;
    lines.push({ start: at, body, quote });
    const fence = quote ? -1 : fenceEnd(text, body);
    if (fence >= 0) {
      scan.code.push(body, fence);
      at = afterBreak(text, fence);
    } else {
      at = scanInline(scan, body);
    }
  }
  return { masked: mask(text, scan.comments), code: scan.code, lines };
}

function skipMarker(scan: Scan, start: number): number {
  const first = skipBlank(scan, start);
  const marker = markerEnd(scan.text, first);
  if (marker < 0) return first;
  const after = skipBlank(scan, marker);
  return after > marker ? after : first;
}

function markerEnd(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code === 45 || code === 42 || code === 43) return at + 1;
  let end = at;
  while (text.charCodeAt(end) >= 48 && text.charCodeAt(end) <= 57) end += 1;
  const sign = text.charCodeAt(end);
  return end > at && (sign === 46 || sign === 41) ? end + 1 : -1;
}

/** Over white space and closed comments, which count as white space. */
function skipBlank(scan: Scan, start: number): number {
  let at = start;
  for (;;) {
    if (isBlank(scan.text.charCodeAt(at))) {
      at += 1;
      continue;
    }
    const comment = commentEnd(scan, at);
    if (comment < 0) return at;
    scan.comments.push(at, comment);
    at = comment;
  }
}

/** `<!-->` and `<!--->` are whole comments in HTML, hence the search from the second character on. */
function commentEnd(scan: Scan, at: number): number {
  if (scan.lastClose < at + 2 || !scan.text.startsWith('<!--', at)) return -1;
  return scan.text.indexOf('-->', at + 2) + 3;
}

/** The end of the fenced block that opens at `at`, without its line break; -1 where none opens. */
function fenceEnd(text: string, at: number): number {
  const sign = text.charCodeAt(at);
  if (sign !== 96 && sign !== 126) return -1;
  const afterRun = runEnd(text, at);
  const length = afterRun - at;
  if (length < 3) return -1;
  let lineEnd = breakFrom(text, afterRun);
  if (sign === 96 && text.slice(afterRun, lineEnd).includes('`')) return -1;
  while (lineEnd < text.length) {
    const start = afterBreak(text, lineEnd);
    lineEnd = breakFrom(text, start);
    if (closesFence(text, start, lineEnd, sign, length)) return lineEnd;
  }
  return text.length;
}

function closesFence(text: string, start: number, end: number, sign: number, length: number): boolean {
  let at = start;
  while (at < end && isBlank(text.charCodeAt(at))) at += 1;
  if (text.charCodeAt(at) !== sign) return false;
  const after = runEnd(text, at);
  if (after - at < length) return false;
  at = after;
  while (at < end && isBlank(text.charCodeAt(at))) at += 1;
  return at === end;
}

function runEnd(text: string, start: number): number {
  const sign = text.charCodeAt(start);
  let end = start + 1;
  while (text.charCodeAt(end) === sign) end += 1;
  return end;
}

function breakFrom(text: string, start: number): number {
  let end = start;
  while (end < text.length && !isLineBreak(text.charCodeAt(end))) end += 1;
  return end;
}

function afterBreak(text: string, at: number): number {
  if (at >= text.length) return text.length;
  return text.charCodeAt(at) === 13 && text.charCodeAt(at + 1) === 10 ? at + 2 : at + 1;
}

/** Finds code and comments to the end of the line; a comment carries the line over its own breaks. */
function scanInline(scan: Scan, start: number): number {
  const { text } = scan;
  let at = start;
  for (;;) {
    SPECIAL.lastIndex = at;
    if (!SPECIAL.test(text)) return text.length;
    at = SPECIAL.lastIndex - 1;
    const code = text.charCodeAt(at);
    if (isLineBreak(code)) return afterBreak(text, at);
    if (code === 96) {
      at = scanBackticks(scan, at, start);
      continue;
    }
    const comment = commentEnd(scan, at);
    if (comment >= 0) scan.comments.push(at, comment);
    at = comment >= 0 ? comment : at + 1;
  }
}

function scanBackticks(scan: Scan, at: number, lineBody: number): number {
  const { text } = scan;
  if (at > lineBody && text.charCodeAt(at - 1) === 92) return at + 1;
  const end = runEnd(text, at);
  const close = partner(scan, end - at, end);
  if (close < 0) return end;
  scan.code.push(at, close + (end - at));
  return close + (end - at);
}

/** The next run of this length at or after `from` on the same line; -1 without one. */
function partner(scan: Scan, length: number, from: number): number {
  if (!scan.runs || scan.runs.until < from) scan.runs = collectRuns(scan.text, from);
  const runs = scan.runs.byLength.get(length);
  if (!runs) return -1;
  while (runs.next < runs.starts.length && (runs.starts[runs.next] ?? 0) < from) runs.next += 1;
  return runs.starts[runs.next] ?? -1;
}

function collectRuns(text: string, from: number): BacktickRuns {
  const until = breakFrom(text, from);
  const byLength: BacktickRuns['byLength'] = new Map();
  let at = text.indexOf('`', from);
  while (at >= 0 && at < until) {
    const end = runEnd(text, at);
    const runs = byLength.get(end - at);
    if (runs) runs.starts.push(at);
    else byLength.set(end - at, { starts: [at], next: 0 });
    at = text.indexOf('`', end);
  }
  return { until, byLength };
}

function mask(text: string, comments: readonly number[]): string {
  if (comments.length === 0) return text;
  const parts: string[] = [];
  let at = 0;
  for (let i = 0; i + 1 < comments.length; i += 2) {
    const start = comments[i] ?? 0;
    const end = comments[i + 1] ?? start;
    parts.push(text.slice(at, start), ' '.repeat(end - start));
    at = end;
  }
  parts.push(text.slice(at));
  return parts.join('');
}
