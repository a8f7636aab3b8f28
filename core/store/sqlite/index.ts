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

const SETTLED = 'settled';
/** A database of before the mark has worlds of which none was made by the first start that was cut off. */
const IS_SETTLED = `select 1 where exists (select 1 from meta where key = ?)
  or (exists (select 1 from worlds) and not exists (select 1 from idempotency_keys where scope = 'demo'))`;

export interface SqliteStore extends Store {
  /** What the store has executed so far, for the speed gates. */
  counters(): { statements: number; commits: number };
  /** The texts of the statements that it has executed, for the gate on query plans. */
  statements(): string[];
  /** Nobody has said `settle` yet: what a new database gets is not in it, or not whole. */
  readonly isNew: boolean;
  /** What a new database gets is in it. */
  settle(): Promise<void>;
}

/**
 * Opens the store on one SQLite file, alone on it until `close`.
 * Throws AppError `busy` where another server has it, `invalid` for a file that is damaged, foreign or newer.
 */
export async function openSqliteStore(options: OpenOptions & { clock: Clock; ids: Ids }): Promise<SqliteStore> {
  const db = await openDatabase(options);
  const session = openSession(db, options.clock, options.ids);
  const paths = openBranchPaths(session);
  return {
    isNew: !session.one(IS_SETTLED, SETTLED),
    async settle() {
      session.run('insert into meta (key, value) values (?, ?) on conflict do nothing', SETTLED, '1');
    },
    ...sqliteDirectory(session, paths),
    ...sqliteBranches(session, paths),
    ...sqliteMutations(session),
    ...sqliteTurns(session),
    ...sqliteRecovery(session),
    ...sqliteApprovals(session),
    ...sqliteTokens(session),
    counters: () => ({ ...session.counters }),
    statements: session.statements,
    async close() {
      session.close();
    },
  };
}
