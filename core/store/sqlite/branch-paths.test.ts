import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { randomIds, systemClock } from '../../machine.ts';
import { packageRoot } from '../../paths.ts';
import { BACKWARD, FORWARD, openBranchPaths, PATH, readPath } from './branch-paths.ts';
import { openDatabase } from './database.ts';
import { openSession, type Session } from './session.ts';

const LENGTH = 100_000;
let folder: string;
let db: Database.Database;
let session: Session;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'parley-paths-'));
  db = await openDatabase({ file: join(folder, 'p.db'), migrations: join(packageRoot(), 'drizzle', 'sqlite') });
  session = openSession(db, systemClock, randomIds());
});
afterEach(() => {
  session.close();
  rmSync(folder, { recursive: true, force: true });
});

const plan = (sql: string, ...values: unknown[]) =>
  db
    .prepare(`explain query plan ${sql}`)
    .all(...values)
    .map((row) => (row as { detail: string }).detail);

/** Branch 0 has seqs 1…60,000; branch 1 forks after 10 and has the next 39,990; branch 2 forks from 1 after 70,000 and has 10. */
function fill(): void {
  db.exec(`
    insert into chats (id, world_id, title, ledger, branch, created_at, updated_at) values ('c', 'w', '', '{}', 2, 0, 0);
    insert into branches (chat_id, id, parent, fork_seq, created_at) values ('c', 0, 0, 0, 0), ('c', 1, 0, 10, 0), ('c', 2, 1, 70000, 0);
    with recursive n(seq) as (select 1 union all select seq + 1 from n where seq < ${LENGTH})
    insert into messages (chat_id, seq, id, branch, world_id, sender_kind, body)
    select 'c', seq, 'm' || seq, case when seq <= 60000 then 0 when seq <= ${LENGTH - 10} then 1 else 2 end, 'w', 'human',
      json_object('seq', seq, 'content', 'x') from n;
  `);
}

test('pages and paths are ranges of an index, never a scan or a sort', () => {
  for (const sql of [FORWARD, BACKWARD]) {
    const steps = plan(sql, 'c', 0, 0, 5, 10);
    expect(steps).toHaveLength(1);
    expect(steps[0]).toContain('USING INDEX messages_branch (chat_id=? AND branch=? AND seq>? AND seq<?)');
  }
  const steps = plan(PATH, { chat: 'c', branch: 1, upTo: 5 });
  expect(steps.filter((step) => step.includes('branches') || step.startsWith('SEARCH b'))).not.toEqual([]);
  expect(steps.filter((step) => /SCAN (?!p\b|path\b)/.test(step))).toEqual([]);
});

test('a page reads as many segments as it needs, whatever the length of the chat', () => {
  fill();
  const paths = openBranchPaths(session);
  const seqs = (page: { before?: number; after?: number; limit: number }) =>
    readPath(session, 'c', paths.active('c'), page).messages.map(({ seq }) => seq);
  expect(paths.active('c')).toHaveLength(3);
  const before = session.counters.statements;
  expect(seqs({ limit: 5 })).toEqual([99_996, 99_997, 99_998, 99_999, 100_000]);
  expect(session.counters.statements - before).toBe(1);
  expect(seqs({ before: 99_993, limit: 4 })).toEqual([69_999, 70_000, 99_991, 99_992]);
  expect(seqs({ before: 60_003, limit: 4 })).toEqual([9, 10, 60_001, 60_002]);
  expect(seqs({ after: 8, limit: 4 })).toEqual([9, 10, 60_001, 60_002]);
  expect(seqs({ after: 69_998, limit: 4 })).toEqual([69_999, 70_000, 99_991, 99_992]);
  expect(seqs({ after: 8, before: 60_002, limit: 500 })).toEqual([9, 10, 60_001]);
  expect(seqs({ after: 100_000, limit: 4 })).toEqual([]);
  expect(readPath(session, 'c', paths.active('c'), { before: 3, limit: 2 }).next).toBeNull();
  expect(readPath(session, 'c', paths.upTo('c', 'm12'), { limit: 2 }).messages.map(({ seq }) => seq)).toEqual([11, 12]);
  const rows = readPath(session, 'c', paths.active('c'), { limit: LENGTH }).messages;
  expect(rows).toHaveLength(10 + 10_000 + 10);
});
