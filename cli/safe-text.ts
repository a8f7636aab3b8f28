/** Control characters (C0 without tab and line feed, DEL, C1): a terminal would obey them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
/** Marks that reorder what is shown (Unicode bidirectional embeddings, overrides and isolates), and line separators. */
const REORDERING = /[\u202a-\u202e\u2066-\u2069\u2028\u2029]/g;
/** What shows nothing or only moves other text; two names that differ in it alone would look the same. */
const INVISIBLE = /[\t\n\p{Cf}\u115f\u1160\u3164\uffa0]|[\u17b4\u17b5]|\u034f/gu;

function escaped(character: string): string {
  if (character === '\n') return '\\n';
  if (character === '\t') return '\\t';
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
}

/** Foreign text for the terminal: lines and tabs stay, everything that would drive or reorder the terminal is shown escaped. */
export function safeText(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(CONTROL, escaped).replace(REORDERING, escaped);
}

/** A foreign name or id on one line: invisible characters are shown escaped too. */
export function safeName(name: string): string {
  return safeText(name).replace(INVISIBLE, escaped);
}
