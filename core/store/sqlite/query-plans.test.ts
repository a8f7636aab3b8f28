import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../config.ts';
import { OWNER, openParley } from '../../index.ts';
import { packageRoot } from '../../paths.ts';
import type { Log, Models } from '../../ports.ts';
import { AgentSettings, WorldSettings } from '../../protocol/entities.ts';
import { openDatabase } from './database.ts';

const quiet: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Answers once with a hand-over, then with plain text. */
const models: Models = {
  resolve: async () => ({
    async *stream({ scene }) {
      if (scene.text.includes('fail')) throw new Error('it fails');
      yield { type: 'text', text: scene.text.includes('chain') ? '@bob go on' : 'done' };
      yield { type: 'finish', stop: 'end' };
    },
  }),
  defaults: () => ({ provider: 'test', model: 'test' }),
};

/** Does all that a busy room does, and answers the statements that the store ran for it. */
async function statementsOfWork(folder: string): Promise<string[]> {
  const config = loadConfig({ data: folder }, {});
  const parley = await openParley({ config, log: quiet, version: 'test', demo: false, models });
  const { id: world } = await parley.createWorld(OWNER, WorldSettings.parse({ name: 'w' }));
  for (const name of ['ann', 'bob']) await parley.createAgent(OWNER, world, AgentSettings.parse({ name }));
  const { id: chat } = await parley.createChat(OWNER, world, {});
  for (const [n, text] of ['@ann chain', 'everybody', '@ann fail'].entries()) {
    const posted = await parley.post(OWNER, world, chat, text, { scope: 's', key: `k${n}`, hash: 'h' });
    await parley.whenIdle(OWNER, world, chat, 10_000);
    await parley.forward(OWNER, world, chat, posted.message.id, 'bob');
    await parley.whenIdle(OWNER, world, chat, 10_000);
  }
  await parley.messages(OWNER, world, chat, { limit: 50 });
  await parley.messages(OWNER, world, chat, { limit: 50, after: 1 });
  await parley.messages(OWNER, world, chat, { limit: 50, before: 3 });
  await parley.events.read(world, 0, 100);
  await parley.events.head(world);
  await parley.turns(OWNER, world, chat);
  await parley.getWorld(OWNER, world);
  await parley.pause(OWNER, world, chat);
  await parley.resume(OWNER, world, chat);
  await parley.stop(OWNER, world, chat);
  await parley.authenticate('no such token');
  const statements = parley.store.statements();
  await parley.close();
  return statements;
}

function valuesFor(sql: string): unknown[] {
  const named = [...sql.matchAll(/@(\w+)/g)].map((match) => [match[1], null]);
  if (named.length > 0) return [Object.fromEntries(named)];
  return [Array<null>(sql.split('?').length - 1).fill(null)];
}

/** The whole of a table, or all that a chat or a world ever had, instead of what is asked for. */
const WASTE = [/^SCAN (?!CONSTANT ROW)/, /^SEARCH (?:turns|t|r) USING INDEX turns_(?:chat|key|world) \(\w+=\?\)$/];
/** Indexes that hold no more than what waits or runs; the queue itself, read whole at a start; rows of an insert. */
const MAY = [
  /^SCAN run_queue(?: USING (?:COVERING )?INDEX run_queue_free)?$/,
  /^SCAN (?:turns|t) USING (?:COVERING )?INDEX turns_open$/,
  /^SCAN approvals USING INDEX approvals_pending$/,
  /^SCAN \d+-ROW VALUES CLAUSE$/,
  // The list that the statement was handed, not a table.
  /^SCAN json_each VIRTUAL TABLE INDEX \d+:$/,
  // Asks at a start whether there is a world at all, and ends with the first.
  /^SCAN worlds USING COVERING INDEX sqlite_autoindex_worlds_1$/,
];
/** A page of the list of turns, newest first. */
const PAGED = /order by queued_at desc, rowid desc limit/;

test('no statement that a busy room runs reads a whole table, or all turns of a chat', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-plans-'));
  try {
    const statements = await statementsOfWork(folder);
    expect(statements.length).toBeGreaterThan(25);
    const db = await openDatabase({
      file: join(folder, 'parley.db'),
      migrations: join(packageRoot(), 'drizzle', 'sqlite'),
    });
    const wasteful: string[] = [];
    for (const sql of statements) {
      if (PAGED.test(sql)) continue;
      const plan = db.prepare(`explain query plan ${sql}`).all(...valuesFor(sql)) as { detail: string }[];
      for (const { detail } of plan) {
        if (WASTE.some((kind) => kind.test(detail)) && !MAY.some((kind) => kind.test(detail)))
          wasteful.push(`${detail}: ${sql}`);
      }
    }
    db.close();
    expect(wasteful).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
