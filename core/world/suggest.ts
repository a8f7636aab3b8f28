import { type AgentId, foldName } from '../protocol/ids.ts';
import type { CompiledRoster } from './roster.ts';

/** Longer names get no suggestion: nobody mistypes so much. */
const MAX_NAME = 64;
/** The fewest letters for which the beginning of a name suggests the whole. */
const MIN_PREFIX = 3;

/** Three rows of the comparison, used again for each agent. */
type Rows = [Uint8Array, Uint8Array, Uint8Array];

/**
 * The agent whose id, name or display name is closest to what was written, by slips of the hand
 * (a letter left out, added, changed, or two swapped), at most one in three letters and three in all;
 * failing that, the one whose name begins so. The first of equals in the world's order. Costs a few
 * comparisons per letter and agent.
 */
export function closestAgent(written: string, roster: CompiledRoster): AgentId | undefined {
  const name = foldName(written);
  if (name.length === 0 || name.length > MAX_NAME) return undefined;
  const size = 2 * MAX_NAME;
  const rows: Rows = [new Uint8Array(size), new Uint8Array(size), new Uint8Array(size)];
  let best: AgentId | undefined;
  let bound = Math.max(1, Math.min(3, Math.floor(name.length / 3)));
  for (const { fold, agentId } of roster.spellings) {
    const distance = slips(name, fold, bound, rows);
    if (distance > bound) continue;
    best = agentId;
    bound = distance - 1;
    if (bound < 0) break;
  }
  if (best !== undefined || name.length < MIN_PREFIX) return best;
  return roster.spellings.find(({ fold }) => fold.startsWith(name))?.agentId;
}

/** Optimal string alignment distance inside a band of `bound`; any number above `bound` means too far. */
function slips(a: string, b: string, bound: number, rows: Rows): number {
  const far = bound + 1;
  if (Math.abs(a.length - b.length) > bound) return far;
  let [before, previous, row] = rows;
  for (let j = 0; j <= b.length; j += 1) previous[j] = Math.min(j, far);
  for (let i = 1; i <= a.length; i += 1) {
    const from = Math.max(1, i - bound);
    const to = Math.min(b.length, i + bound);
    row[from - 1] = from === 1 ? Math.min(i, far) : far;
    let least = row[from - 1] ?? far;
    for (let j = from; j <= to; j += 1) {
      const same = a.charCodeAt(i - 1) === b.charCodeAt(j - 1);
      let cost = Math.min((previous[j - 1] ?? far) + (same ? 0 : 1), (previous[j] ?? far) + 1, (row[j - 1] ?? far) + 1);
      if (
        i > 1 &&
        j > 1 &&
        a.charCodeAt(i - 1) === b.charCodeAt(j - 2) &&
        a.charCodeAt(i - 2) === b.charCodeAt(j - 1)
      ) {
        cost = Math.min(cost, (before[j - 2] ?? far) + 1);
      }
      row[j] = Math.min(cost, far);
      least = Math.min(least, cost);
    }
    if (to < b.length) row[to + 1] = far;
    if (least > bound) return far;
    [before, previous, row] = [previous, row, before];
  }
  return previous[b.length] ?? far;
}
