import type { Directory, Roster } from '../ports.ts';
import { AppError } from '../protocol/errors.ts';
import { type CompiledRoster, compileRoster } from './mentions.ts';

/** A world's agents with their names compiled for parsing. */
export interface CompiledWorld extends Roster {
  compiled: CompiledRoster;
}

/** Keeps compiled rosters of the worlds at work. A stale one is refused by the store and dropped by the caller. */
export interface Rosters {
  /** Throws AppError `not_found`. */
  get(world: string): Promise<CompiledWorld>;
  drop(world: string): void;
}

const MAX_KEPT = 200;

export function openRosters(store: Directory): Rosters {
  const kept = new Map<string, CompiledWorld>();
  let drops = 0;
  return {
    async get(world) {
      const known = kept.get(world);
      if (known) return known;
      const before = drops;
      const roster = await store.roster(world);
      if (!roster) throw new AppError('not_found', `there is no world ${JSON.stringify(world)}`);
      const compiled = { ...roster, compiled: compileRoster(roster.agents) };
      // It was changed while it was read: good for this caller, whose plan the store judges, but not to keep.
      if (drops !== before) return compiled;
      const oldest = kept.keys().next();
      if (kept.size >= MAX_KEPT && !oldest.done) kept.delete(oldest.value);
      kept.set(world, compiled);
      return compiled;
    },
    drop(world) {
      drops++;
      kept.delete(world);
    },
  };
}
