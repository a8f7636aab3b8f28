import { type AgentId, foldName } from '../protocol/ids.ts';
import type { CompiledRoster } from './roster.ts';

/** Longer names get no suggestion: nobody mistypes so much. */
const MAX_NAME = 64;
/** The fewest letters for which the beginning of a name suggests the whole. */
const MIN_PREFIX = 3;

/**
 * The agent whose id, name or display name is closest to what was written, by slips of the hand
 * (a letter left out, added, changed, or two swapped), at most one in three letters and three in all;
 * failing that, the one whose name begins so. The first of equals in the world's order. Costs a few
 * comparisons per letter and agent.
 */
export function closestAgent(written: string, roster: CompiledRoster): AgentId | undefined {
  const name = foldName(written);
  if (name.length === 0 || name.length > MAX_NAME) return undefined;
  let best: AgentId | undefined;
  let bound = Math.max(1, Math.min(3, Math.floor(name.length / 3)));
  for (const { fold, agentId } of roster.spellings) {
    const distance = slips(name, fold, bound);
    if (distance > bound) continue;
    best = agentId;
    bound = distance - 1;
    if (bound < 0) break;
  }
  if (best !== undefined || name.length < MIN_PREFIX) return best;
  return roster.spellings.find(({ fold }) => fold.startsWith(name))?.agentId;
}

/** Optimal string alignment distance inside a band of `bound`; any number above `bound` means too far. */
function slips(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) > bound) return bound + 1;
  const far = bound + 1;
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => Math.min(j, far));
  for (let i = 1; i <= a.length; i += 1) {
    const row = new Array<number>(b.length + 1).fill(far);
    row[0] = Math.min(i, far);
    let least = row[0];
    const to = Math.min(b.length, i + bound);
    for (let j = Math.max(1, i - bound); j <= to; j += 1) {
      const same = a.charCodeAt(i - 1) === b.charCodeAt(j - 1);
      let cost = Math.min((previous[j - 1] ?? far) + (same ? 0 : 1), (previous[j] ?? far) + 1, (row[j - 1] ?? far) + 1);
      const swapped =
        j > 1 && a.charCodeAt(i - 1) === b.charCodeAt(j - 2) && a.charCodeAt(i - 2) === b.charCodeAt(j - 1);
      if (swapped) cost = Math.min(cost, (before[j - 2] ?? far) + 1);
      row[j] = Math.min(cost, far);
      least = Math.min(least, cost);
    }
    if (least > bound) return far;
    before = previous;
    previous = row;
  }
  return previous[b.length] ?? far;
}
