import type { Clock, Ids, Store } from '../../ports.ts';
import { sqliteApprovals } from './approvals.ts';
import { openBranchPaths } from './branch-paths.ts';
import { sqliteBranches } from './branches.ts';
import { type OpenOptions, openDatabase } from './database.ts';
import { sqliteDirectory } from './directory.ts';
import { sqliteMutations } from './mutations.ts';
import { sqliteRecovery } from './recovery.ts';
import { openSession } from './session.ts';
import { sqliteTokens } from './tokens.ts';
import { sqliteTurns } from './turns.ts';

export interface SqliteStore extends Store {
  /** What the store has executed so far, for the speed gates. */
  counters(): { statements: number; commits: number };
  /** The database was made by this opening. */
  readonly isNew: boolean;
}

/**
 * Opens the store on one SQLite file, alone on it until `close`.
 * Throws AppError `busy` where another server has it, `invalid` for a file that is damaged, foreign or newer.
 */
export async function openSqliteStore(options: OpenOptions & { clock: Clock; ids: Ids }): Promise<SqliteStore> {
  const { db, isNew } = await openDatabase(options);
  const session = openSession(db, options.clock, options.ids);
  const paths = openBranchPaths(session);
  return {
    isNew,
    ...sqliteDirectory(session, paths),
    ...sqliteBranches(session, paths),
    ...sqliteMutations(session),
    ...sqliteTurns(session),
    ...sqliteRecovery(session),
    ...sqliteApprovals(session),
    ...sqliteTokens(session),
    counters: () => ({ ...session.counters }),
    async close() {
      session.close();
    },
  };
}
