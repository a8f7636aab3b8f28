import type { ControlTag } from './control-tags.ts';
import { isComma } from './letters.ts';
import { type CompiledRoster, lookupName, type Named } from './roster.ts';

export interface WrittenName {
  named: Named;
  text: string;
}

/** The names of the last `TO` tag that has any; null without one. */
export function chooseTo(tags: readonly ControlTag[], roster: CompiledRoster): WrittenName[] | null {
  for (let i = tags.length - 1; i >= 0; i -= 1) {
    const tag = tags[i];
    if (tag?.kind !== 'to') continue;
    const names = readTo(tag.list, roster);
    if (names.length > 0) return names;
  }
  return null;
}

/** Whole names between commas; a name that has commas itself is tried before its pieces. */
function readTo(list: string, roster: CompiledRoster): WrittenName[] {
  const commas = [-1];
  for (let i = 0; i < list.length; i += 1) if (isComma(list.charAt(i))) commas.push(i);
  commas.push(list.length);
  const names: WrittenName[] = [];
  let piece = 0;
  while (piece + 1 < commas.length) {
    const start = (commas[piece] ?? 0) + 1;
    const most = Math.min(piece + 1 + roster.maxCommas, commas.length - 1);
    let last = most;
    while (last > piece + 1 && nameOf(list.slice(start, commas[last]), roster).named.type === 'unknown') last -= 1;
    const name = nameOf(list.slice(start, commas[last]), roster);
    if (name.text !== '' && !/^[@＠]$/.test(name.text)) names.push(name);
    piece = last;
  }
  return names;
}

function nameOf(written: string, roster: CompiledRoster): WrittenName {
  const text = written.trim();
  const whole = lookupName(text, roster);
  if (whole) return { named: whole, text };
  const bare = /^[@＠]/.test(text) ? lookupName(text.slice(1), roster) : null;
  return { named: bare ?? { type: 'unknown' }, text };
}
