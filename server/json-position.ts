// A string may hold any character but quote, backslash and the control characters before the space.
const TOKEN =
  /[\t\n\r ]*(?:([{}[\],:])|("(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null))/y;
const SPACE = /[\t\n\r ]*/y;

/** What may come next: a value, a key, a colon, or a comma or end; `OrEnd` right after an opening bracket. */
type Expected = 'value' | 'valueOrEnd' | 'key' | 'keyOrEnd' | 'colon' | 'commaOrEnd';

function afterSpace(text: string, from: number): number {
  SPACE.lastIndex = from;
  SPACE.exec(text);
  return SPACE.lastIndex;
}

/**
 * Where a text stops being JSON, in UTF-16 units from 0; its length where only the end is missing. Called only for
 * text that `JSON.parse` refused: its own message names no position in many cases.
 */
export function jsonErrorPosition(text: string): number {
  const open: string[] = [];
  let expected: Expected = 'value';
  let at = 0;
  for (;;) {
    if (open.length === 0 && expected === 'commaOrEnd') return afterSpace(text, at);
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    const start = afterSpace(text, at);
    if (match === null) return start;
    const [, mark, string] = match;
    at = TOKEN.lastIndex;
    const inObject = open.at(-1) === '{';
    if (mark === undefined) {
      const isKey: boolean = expected === 'key' || expected === 'keyOrEnd';
      if (isKey ? string === undefined : expected !== 'value' && expected !== 'valueOrEnd') return start;
      expected = isKey ? 'colon' : 'commaOrEnd';
    } else if (mark === '{' || mark === '[') {
      if (expected !== 'value' && expected !== 'valueOrEnd') return start;
      open.push(mark);
      expected = mark === '{' ? 'keyOrEnd' : 'valueOrEnd';
    } else if (mark === ':') {
      if (expected !== 'colon') return start;
      expected = 'value';
    } else if (mark === ',') {
      if (expected !== 'commaOrEnd') return start;
      expected = inObject ? 'key' : 'value';
    } else {
      const mayEnd = expected === 'commaOrEnd' || expected === (inObject ? 'keyOrEnd' : 'valueOrEnd');
      if (!mayEnd || inObject !== (mark === '}')) return start;
      open.pop();
      expected = 'commaOrEnd';
    }
  }
}
