/** How names are read: without zod, so that the page’s bundle has no schemas. */

const CAMEL_BOUNDARY = /(?<=[\p{Ll}\p{Nd}])(?=\p{Lu})/gu;
const NOT_IN_ID = /[^\p{L}\p{M}\p{N}]+/gu;
const ASCII = /^[\t-\r -~]*$/;
const SEPARATOR = /^[\s\u0085_\-\u2010\u2011]$/u;

/**
 * Zero-width characters, direction marks and variation selectors: text is read as if they were not there.
 * Runs are bounded, so that a megabyte of them needs no stack.
 */
export const FORMAT_RUN = /(?:[\p{Cf}\p{Variation_Selector}]|\u034f){1,64}/gu;

/**
 * The id rule of the mention grammar: NFC, a hyphen at each camel-case boundary, lower case, every
 * run of other characters to one hyphen, none at the ends. Letters of every script stay.
 * Returns '' where nothing is left; the caller must refuse that.
 */
export function idFromName(name: string): string {
  return name
    .replace(FORMAT_RUN, '')
    .normalize('NFC')
    .replace(CAMEL_BOUNDARY, '-')
    .toLowerCase()
    .normalize('NFC')
    .replace(NOT_IN_ID, '-')
    .replace(/^-|-$/g, '');
}

/**
 * Two names that fold to one string are the same name: Unicode case does not count, and white space,
 * hyphen and underscore stand for each other, one for one. The mention parser folds piece by piece
 * with this function, so it looks at no more than one letter and its combining marks at a time.
 */
export function foldName(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase().replace(/[\s_]/g, '-');
  let folded = '';
  for (const character of name.replace(FORMAT_RUN, '').normalize('NFC')) folded += foldCharacter(character);
  return folded.normalize('NFC');
}

function foldCharacter(character: string): string {
  if (SEPARATOR.test(character)) return '-';
  // The dotless i has an upper case of its own only in Turkish; Unicode case folding leaves it alone.
  if (character === 'ı') return character;
  return character.toLowerCase().toUpperCase().toLowerCase();
}

/** Names that address people or the world, or that later name run targets and files. */
export const RESERVED_IDS: ReadonlySet<string> = new Set([
  ...['human', 'user', 'you', 'system', 'world', 'main', 'complete', 'failed', 'cancelled', 'self'],
  ...['all', 'everyone', 'here', 'con', 'prn', 'aux', 'nul'],
  ...Array.from({ length: 9 }, (_, i) => [`com${i + 1}`, `lpt${i + 1}`]).flat(),
]);
