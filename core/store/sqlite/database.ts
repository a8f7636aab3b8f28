import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { AppError } from '../../protocol/errors.ts';

/** 'PARL': marks a file as ours in its header. */
const APPLICATION_ID = 0x5041524c;
const MAGIC = 'SQLite format 3\0';
const HEADER_BYTES = 100;

export interface OpenOptions {
  /** The database's path, or ':memory:'. */
  file: string;
  /** The folder of the generated migrations. */
  migrations: string;
}

interface Journal {
  entries: readonly { tag: string }[];
}

/**
 * Opens or creates the database, alone on its file, and brings it up to date after a backup.
 * A damaged, foreign or newer file is refused before anything is written to it.
 * Throws AppError `busy` (another server has it) or `invalid` (what is wrong with the file).
 */
export async function openDatabase(options: OpenOptions): Promise<Database.Database> {
  const { file } = options;
  const known = readJournal(options.migrations).entries.length;
  const inMemory = file === ':memory:';
  if (!inMemory) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    checkHeader(file, known);
  }
  const isNew = inMemory || !existsSync(file) || statSync(file).size === 0;
  let db: Database.Database | undefined;
  try {
    // Created by hand for its mode; the log beside it takes the same one.
    if (!inMemory && isNew) closeSync(openSync(file, 'a', 0o600));
    db = new Database(file, { timeout: 0 });
    db.pragma('locking_mode = EXCLUSIVE');
    // Before the log is switched on, so that it is in the file itself. A creation that was cut off may have been undone.
    db.exec('BEGIN EXCLUSIVE');
    if (isEmpty(db)) db.pragma(`application_id = ${APPLICATION_ID}`);
    db.exec('COMMIT');
    db.pragma('journal_mode = WAL');
    db.exec('BEGIN EXCLUSIVE; COMMIT');
    db.pragma('synchronous = FULL');
    // Statement journals and RETURNING would go through temporary files: half the cost of a turn.
    db.pragma('temp_store = MEMORY');
    db.pragma('foreign_keys = OFF');
    db.pragma('cache_size = -8000');
    await migrate(db, options, known);
    return db;
  } catch (error) {
    db?.close();
    throw explain(error, file);
  }
}

function readJournal(migrations: string): Journal {
  return JSON.parse(readFileSync(join(migrations, 'meta', '_journal.json'), 'utf8')) as Journal;
}

/** Judges a file by its first bytes, so that nothing foreign or broken is ever opened for writing. */
function checkHeader(file: string, known: number): void {
  if (!existsSync(file)) return;
  const handle = openSync(file, 'r');
  try {
    const stat = fstatSync(handle);
    if (!stat.isFile()) throw new AppError('invalid', `${file} is not a file; name another database`);
    if (stat.size === 0) return;
    const header = Buffer.alloc(HEADER_BYTES);
    const read = readSync(handle, header, 0, HEADER_BYTES, 0);
    if (read < HEADER_BYTES || header.toString('latin1', 0, 16) !== MAGIC) {
      throw new AppError(
        'invalid',
        `${file} is damaged or not a SQLite database; it was left untouched. Restore a backup from the folder "backups" beside it, or name another data directory`,
      );
    }
    if (header.readUInt32BE(68) !== APPLICATION_ID) {
      throw new AppError(
        'invalid',
        `${file} is the database of another program; it was left untouched. Name another data directory`,
      );
    }
    if (header.readUInt32BE(60) > known) throw newer(file);
    const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16);
    // With a log beside it the file may be in the middle of being brought up to date: SQLite goes on with that.
    if (!hasLog(file) && stat.size < header.readUInt32BE(28) * pageBytes) {
      throw new AppError(
        'invalid',
        `${file} is damaged (it is shorter than its header says); it was left untouched. Restore a backup from the folder "backups" beside it`,
      );
    }
  } finally {
    closeSync(handle);
  }
}

function hasLog(file: string): boolean {
  return existsSync(`${file}-wal`) && statSync(`${file}-wal`).size > 0;
}

const isEmpty = (db: Database.Database): boolean =>
  (db.prepare('select count(*) as n from sqlite_master').get() as { n: number }).n === 0;

function newer(file: string): AppError {
  return new AppError(
    'invalid',
    `${file} was written by a newer version of Parley; it was left untouched. Install that version, or name another data directory`,
  );
}

async function migrate(db: Database.Database, options: OpenOptions, known: number): Promise<void> {
  const version = db.pragma('user_version', { simple: true }) as number;
  if (version > known) throw newer(options.file);
  // Reads a page of the schema and of the busiest table, so that a broken file is noticed before it is served.
  const tables = db.prepare('select count(*) as n from sqlite_master').get() as { n: number };
  if (version > 0) db.prepare('select count(*) from (select 1 from worlds limit 1)').get();
  if (version === known) return;
  if (version === 0 && tables.n > 0) {
    throw new AppError(
      'invalid',
      `${options.file} holds tables that are not ours; it was left untouched. Name another data directory`,
    );
  }
  if (version > 0) backup(db, options.file, version);
  const [{ drizzle }, { migrate: run }] = await Promise.all([
    import('drizzle-orm/better-sqlite3'),
    import('drizzle-orm/better-sqlite3/migrator'),
  ]);
  run(drizzle(db), { migrationsFolder: options.migrations });
  db.pragma(`user_version = ${known}`);
}

function backup(db: Database.Database, file: string, version: number): void {
  const folder = join(dirname(file), 'backups');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const target = join(folder, `schema-${version}-${Date.now()}.db`);
  db.prepare('VACUUM INTO ?').run(target);
}

function explain(error: unknown, file: string): unknown {
  if (!(error instanceof Database.SqliteError)) return error;
  if (error.code.startsWith('SQLITE_BUSY') || error.code.startsWith('SQLITE_LOCKED')) {
    return new AppError(
      'busy',
      `${file} is in use by another Parley server; stop that one or name another data directory`,
      undefined,
      { cause: error },
    );
  }
  if (error.code.startsWith('SQLITE_CORRUPT') || error.code === 'SQLITE_NOTADB') {
    return new AppError(
      'invalid',
      `${file} is damaged (${error.message}). Restore a backup from the folder "backups" beside it`,
      undefined,
      { cause: error },
    );
  }
  if (
    error.code.startsWith('SQLITE_CANTOPEN') ||
    error.code.startsWith('SQLITE_READONLY') ||
    error.code.startsWith('SQLITE_IOERR')
  ) {
    return new AppError(
      'invalid',
      `${file} cannot be opened for writing (${error.message}); check the rights of its folder`,
      undefined,
      { cause: error },
    );
  }
  if (error.code === 'SQLITE_FULL')
    return new AppError('storage_full', `no space left for ${file}`, undefined, { cause: error });
  return error;
}

/** Names this process as the one that has the data directory; only for messages, the lock is the database's. */
export function writeOwner(dataDir: string, pid: number): void {
  writeFileSync(join(dataDir, 'owner.pid'), `${pid}\n`, { mode: 0o600 });
}

/** The process id that `writeOwner` left, for the message to a second server. */
export function readOwner(dataDir: string): number | null {
  try {
    const pid = Number.parseInt(readFileSync(join(dataDir, 'owner.pid'), 'utf8'), 10);
    return Number.isSafeInteger(pid) ? pid : null;
  } catch {
    return null;
  }
}
