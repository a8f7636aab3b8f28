import Database from 'better-sqlite3';
import type { Amount, Clock, Ids } from '../../ports.ts';
import type { WorldAgent } from '../../protocol/entities.ts';
import { AppError } from '../../protocol/errors.ts';
import type { EventDraft, StoredEvent } from '../../protocol/events.ts';
import type { WorldId } from '../../protocol/ids.ts';

/** One open database with its prepared statements; every part of the store works through it. */
export interface Session {
  readonly clock: Clock;
  readonly ids: Ids;
  /** Counts what the gates measure. */
  readonly counters: { statements: number; commits: number };
  /** Agents as they were at a revision, kept by the turns; emptied when a world goes, whose numbers may come again. */
  readonly snapshots: Map<string, WorldAgent>;
  /** The texts of the statements that have run. */
  statements(): string[];
  /** The first row, or undefined. */
  one<T>(sql: string, ...values: unknown[]): T | undefined;
  all<T>(sql: string, ...values: unknown[]): T[];
  /** How many rows changed. */
  run(sql: string, ...values: unknown[]): number;
  /** Runs `work` in one IMMEDIATE transaction. `work` is synchronous. */
  transaction<T>(work: () => T): T;
  /** Writes events under the world's next seqs, in order, and adds what was spent; call it once, last, in a transaction. */
  append(world: string, drafts: readonly Draft[], spent?: Amount): StoredEvent[];
  close(): void;
}

/** An event to write; `json` is its data already as JSON where the caller has it. */
export interface Draft {
  event: EventDraft;
  json?: string;
}

/** Of turns that have not ended. In a statement it must stand as here: then their own small index serves it. */
export const OPEN = "state in ('queued', 'running', 'waiting')";

const EVENT_COLUMNS = 7;
const MAX_ROWS = 8;
const NOTHING: Amount = { tokens: 0, usd: 0 };

/** Wraps an open database. Statements are prepared once, by their text. */
export function openSession(db: Database.Database, clock: Clock, ids: Ids): Session {
  const statements = new Map<string, Database.Statement>();
  const counters = { statements: 0, commits: 0 };
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');

  const prepare = (sql: string): Database.Statement => {
    counters.statements++;
    let statement = statements.get(sql);
    if (!statement) {
      statement = db.prepare(sql);
      statements.set(sql, statement);
    }
    return statement;
  };
  const guarded = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw translate(error);
    }
  };
  const run = (sql: string, ...values: unknown[]) => guarded(() => prepare(sql).run(...values).changes);
  const one = <T>(sql: string, ...values: unknown[]) => guarded(() => prepare(sql).get(...values) as T | undefined);

  function append(world: string, drafts: readonly Draft[], spent: Amount = NOTHING): StoredEvent[] {
    if (drafts.length === 0 && spent.tokens === 0 && spent.usd === 0) return [];
    const row = one<{ first: number }>(
      `update worlds set next_seq = next_seq + ?, spent_tokens = spent_tokens + ?, spent_usd = spent_usd + ?
       where id = ? returning next_seq - ? as first`,
      drafts.length,
      spent.tokens,
      spent.usd,
      world,
      drafts.length,
    );
    if (!row) throw new AppError('not_found', `there is no world ${JSON.stringify(world)}`);
    const ms = clock.now();
    const at = new Date(ms).toISOString();
    const stored: StoredEvent[] = [];
    for (let start = 0; start < drafts.length; start += MAX_ROWS) {
      const part = drafts.slice(start, start + MAX_ROWS);
      const values: unknown[] = [];
      for (const [index, { event, json }] of part.entries()) {
        const seq = row.first + start + index;
        const chat = 'chat' in event ? event.chat : null;
        values.push(world, seq, event.type, chat, ms, json ?? JSON.stringify(event.data), messageOf(event));
        stored.push({ ...event, seq, at, world: world as WorldId } as StoredEvent);
      }
      run(INSERT_EVENTS[part.length - 1] ?? '', ...values);
    }
    return stored;
  }

  return {
    clock,
    ids,
    counters,
    snapshots: new Map(),
    statements: () => [...statements.keys()],
    one,
    all: <T>(sql: string, ...values: unknown[]) => guarded(() => prepare(sql).all(...values) as T[]),
    run,
    append,
    transaction<T>(work: () => T): T {
      return guarded(() => {
        begin.run();
        try {
          const result = work();
          commit.run();
          counters.commits++;
          return result;
        } catch (error) {
          if (db.inTransaction) rollback.run();
          throw error;
        }
      });
    },
    close: () => {
      statements.clear();
      db.close();
    },
  };
}

const INSERT_EVENTS = Array.from(
  { length: MAX_ROWS },
  (_, index) =>
    `insert into events (world_id, seq, type, chat_id, at, data, message_id) values ${Array.from({ length: index + 1 }, () => `(${Array(EVENT_COLUMNS).fill('?').join(', ')})`).join(', ')}`,
);

/** The message whose text the event holds. */
function messageOf(event: EventDraft): string | null {
  return event.type === 'message.created' || event.type === 'message.updated' ? event.data.message.id : null;
}

function translate(error: unknown): unknown {
  if (!(error instanceof Database.SqliteError)) return error;
  if (error.code === 'SQLITE_FULL') {
    return new AppError(
      'storage_full',
      'the disk of the data directory is full; free some space and send it again',
      undefined,
      { cause: error },
    );
  }
  if (error.code.startsWith('SQLITE_BUSY')) {
    return new AppError('busy', 'the database is locked by another program; try again', undefined, { cause: error });
  }
  return error;
}
