/** Character classes of the mention grammar. Positions are UTF-16 units; ASCII never reaches a regular expression. */

const WORD = /^[\p{L}\p{M}\p{N}]$/u;
const MARK = /^\p{M}$/u;
const UNSPACED = /^(?=[\p{L}\p{M}])[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Thai}]$/u;
const COMMAS = ',，、،';

/** A letter, combining mark or digit of any script at `index`. */
export function isWordAt(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  if (code < 128) return isAsciiWord(code);
  if (isIdeograph(code)) return true;
  const point = text.codePointAt(index);
  return point !== undefined && WORD.test(String.fromCodePoint(point));
}

function isAsciiWord(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57);
}

/** Han ideographs and Hangul syllables: letters without case, marks or decompositions that NFC would touch. */
export function isIdeograph(code: number): boolean {
  return (code >= 0x4e00 && code <= 0x9fff) || (code >= 0xac00 && code <= 0xd7a3);
}

/** A mark, or a Hangul vowel or final: with the character before it, it may be one character in NFC. */
export function joinsLeftAt(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  if (!(code >= 0x300) || isIdeograph(code)) return false;
  if (code >= 0x1160 && code <= 0x11ff) return true;
  const point = text.codePointAt(index);
  return point !== undefined && MARK.test(String.fromCodePoint(point));
}

/** A letter of a script that is written without spaces between words: Han, kana, Hangul, Thai. */
export function isUnspaced(character: string): boolean {
  const code = character.charCodeAt(0);
  return isIdeograph(code) || (code >= 0xe00 && UNSPACED.test(character));
}

/** The character that ends before `index`; '' at the start. */
export function characterBefore(text: string, index: number): string {
  if (index <= 0) return '';
  const low = text.charCodeAt(index - 1);
  const pair = index > 1 && low >= 0xdc00 && low <= 0xdfff && (text.charCodeAt(index - 2) & 0xfc00) === 0xd800;
  return text.slice(pair ? index - 2 : index - 1, index);
}

export function isLineBreak(code: number): boolean {
  return code === 10 || code === 13;
}

/** White space within a line; false for line breaks. */
export function isBlank(code: number): boolean {
  if (code === 32 || code === 9) return true;
  if (code < 0x80) return code === 11 || code === 12;
  if (code < 0x1680) return code === 0x85 || code === 0xa0;
  return (
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000
  );
}

export function isComma(character: string): boolean {
  return character.length === 1 && COMMAS.includes(character);
}

/** Hyphen or underscore: inside an unknown name, and no end of a known one when a letter or digit follows. */
export function isJoint(code: number): boolean {
  return code === 45 || code === 95 || code === 0x2010 || code === 0x2011;
}

export function isAtSign(code: number): boolean {
  return code === 0x40 || code === 0xff20;
}
