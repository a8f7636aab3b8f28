import { isWordAt } from './letters.ts';

/** Asked with ascending positions; each answer goes on where the last one stopped. */
export interface UrlCursor {
  covers(at: number): boolean;
}

const MARK = /:\/\/|www\./gi;
const END = /[\s<>]/g;
const MAX_SCHEME = 32;

/** URLs run from `scheme://` or `www.` to white space, `<` or `>`; one that begins in code ends with the code. */
export function findUrls(text: string, code: readonly number[]): UrlCursor {
  let region = 0;
  let end = 0;
  let next = findMark(text, 0);

  const read = (mark: number): void => {
    if (!isUrl(text, mark)) {
      next = findMark(text, mark + 1);
      return;
    }
    END.lastIndex = mark;
    end = END.test(text) ? END.lastIndex - 1 : text.length;
    while ((code[region + 1] ?? Number.POSITIVE_INFINITY) <= mark) region += 2;
    if ((code[region] ?? Number.POSITIVE_INFINITY) <= mark) end = Math.min(end, code[region + 1] ?? end);
    next = findMark(text, end);
  };

  return {
    covers(at) {
      while (next < at) read(next);
      return at < end;
    },
  };
}

function findMark(text: string, from: number): number {
  MARK.lastIndex = from;
  return MARK.test(text)
    ? MARK.lastIndex - (text.charCodeAt(MARK.lastIndex - 1) === 47 ? 3 : 4)
    : Number.POSITIVE_INFINITY;
}

/** A mark is a URL's where a scheme stands before `://`, or `www.` begins a word. */
function isUrl(text: string, mark: number): boolean {
  if (text.charCodeAt(mark) !== 58) return mark === 0 || !isWordAt(text, mark - 1);
  for (let at = mark - 1; at >= 0 && mark - at <= MAX_SCHEME; at -= 1) {
    const character = text.charAt(at);
    if (/[a-z]/i.test(character)) return true;
    if (!/[0-9+.-]/.test(character)) return false;
  }
  return false;
}
