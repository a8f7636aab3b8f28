import { FORMAT_RUN } from '../protocol/ids.ts';

/** A text without its format characters, with the way back to the text as it was. */
export interface VisibleText {
  text: string;
  /** Position in the original of the visible character at `index`. */
  startOf(index: number): number;
  /** Position in the original after the visible character before `index`. */
  endOf(index: number): number;
}

const ASCII = /^[\0-\x7f]*$/;

export function visibleText(original: string): VisibleText {
  if (ASCII.test(original) || original.search(FORMAT_RUN) < 0)
    return { text: original, startOf: (index) => index, endOf: (index) => index };
  const positions = new Int32Array(original.length);
  const parts: string[] = [];
  let length = 0;
  let at = 0;
  const keep = (end: number): void => {
    if (end > at) parts.push(original.slice(at, end));
    for (; at < end; at += 1, length += 1) positions[length] = at;
  };
  for (const run of original.matchAll(FORMAT_RUN)) {
    keep(run.index);
    at = run.index + run[0].length;
  }
  keep(original.length);
  const startOf = (index: number): number => (index < length ? (positions[index] ?? 0) : original.length);
  return { text: parts.join(''), startOf, endOf: (index) => (index > 0 ? startOf(index - 1) + 1 : 0) };
}
