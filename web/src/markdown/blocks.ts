import { Lexer, type MarkedToken } from 'marked';

/** A top-level block and where it begins, which is its key. Blocks that did not change stay the same objects. */
export interface Block {
  readonly at: number;
  readonly token: MarkedToken;
}

const OPTIONS = { gfm: true, breaks: true } as const;
/** The lexer is not linear on every input; what it gets at once is bounded. */
const SECTION = 16_384;
/** Where a text is cut: behind the last empty line, else the last line, else anywhere. */
const EMPTY_LINE = /\n[ \t]*\n/g;

/** Quotations within quotations cost the lexer their depth each time; nobody can read them either. */
const DEEP_QUOTE = /^(?:[ \t]*>){40}/m;

function lex(text: string): readonly MarkedToken[] {
  if (DEEP_QUOTE.test(text)) return [{ type: 'code', raw: text, text }];
  try {
    return new Lexer(OPTIONS).lex(text) as MarkedToken[];
  } catch {
    // Nesting deeper than the stack.
    return [{ type: 'code', raw: text, text }];
  }
}

/** Cuts at empty lines outside of fences, so that a section is at most about 16 k characters where the text allows. */
export function sectionsOf(text: string): readonly string[] {
  if (text.length <= SECTION) return [text];
  const sections: string[] = [];
  let rest = text;
  while (rest.length > SECTION) {
    const end = cutAt(rest);
    sections.push(rest.slice(0, end));
    rest = rest.slice(end);
  }
  if (rest !== '') sections.push(rest);
  return sections;
}

function cutAt(text: string): number {
  const head = text.slice(0, SECTION);
  const fence = openFence(head);
  // A long fence is kept whole: it costs the lexer nothing.
  if (fence === 0) return closeOfFence(text) ?? text.length;
  const body = fence > 0 ? head.slice(0, fence) : head;
  if (fence > 0) return fence;
  let cut = 0;
  EMPTY_LINE.lastIndex = 0;
  for (let match = EMPTY_LINE.exec(body); match; match = EMPTY_LINE.exec(body)) cut = EMPTY_LINE.lastIndex;
  if (cut > 0) return cut;
  const line = body.lastIndexOf('\n');
  return line > 0 ? line + 1 : SECTION;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** Where the fence begins that is still open at the end; -1 where none is. */
function openFence(text: string): number {
  let open: { mark: string; at: number } | null = null;
  let at = 0;
  for (const line of text.split('\n')) {
    const mark = FENCE.exec(line)?.[1];
    if (mark !== undefined) {
      if (open === null) open = { mark, at };
      else if (mark.startsWith(open.mark) && line.trim() === mark) open = null;
    }
    at += line.length + 1;
  }
  return open?.at ?? -1;
}

function closeOfFence(text: string): number | null {
  const [first = ''] = text.split('\n', 1);
  const mark = FENCE.exec(first)?.[1];
  if (mark === undefined) return null;
  let at = first.length + 1;
  for (const line of text.slice(at).split('\n')) {
    at += line.length + 1;
    const trimmed = line.trim();
    if (trimmed.startsWith(mark) && trimmed === FENCE.exec(line)?.[1]) return Math.min(at, text.length);
  }
  return null;
}

function blocksOf(text: string, offset: number): readonly Block[] {
  const blocks: Block[] = [];
  let at = offset;
  for (const token of lex(text)) {
    if (token.type !== 'space' && token.type !== 'def') blocks.push({ at, token });
    at += token.raw.length;
  }
  return blocks;
}

/** Parses a whole message. */
export function parseBlocks(text: string): readonly Block[] {
  let at = 0;
  return sectionsOf(text).flatMap((section) => {
    const blocks = blocksOf(section, at);
    at += section.length;
    return blocks;
  });
}

/**
 * A parser for a text that grows: only the last block is read again, so that a stream costs what it brings.
 * Anything but growth is read anew.
 */
export function growingParser(): (text: string) => readonly Block[] {
  let before = '';
  let blocks: readonly Block[] = [];
  return (text) => {
    if (text === before) return blocks;
    const last = text.startsWith(before) ? blocks.at(-1) : undefined;
    blocks = last ? [...blocks.slice(0, -1), ...blocksOf(text.slice(last.at), last.at)] : parseBlocks(text);
    before = text;
    return blocks;
  };
}
