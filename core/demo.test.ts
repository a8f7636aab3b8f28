import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadConfig } from './config.ts';
import { createDemoWorld } from './demo.ts';
import { OWNER, openParley } from './index.ts';
import { randomIds, systemClock } from './machine.ts';
import { packageRoot } from './paths.ts';
import type { Log } from './ports.ts';
import type { ChatId } from './protocol/ids.ts';
import { openSqliteStore } from './store/sqlite/index.ts';

const quiet: Log = { debug() {}, info() {}, warn() {}, error() {} };
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-demo-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = () =>
  openParley({ config: loadConfig({ data: folder }, {}), log: quiet, version: 'test', ids: randomIds() });

const CHANGES = ['createWorld', 'createAgent', 'patchWorld', 'createChat'] as const;

test.each([0, 1, 2, 3, 4, 5])(
  'a first start that is cut off after %i steps is made whole by the next',
  async (steps) => {
    const migrations = join(packageRoot(), 'drizzle', 'sqlite');
    const file = join(folder, 'parley.db');
    const store = await openSqliteStore({ file, migrations, clock: systemClock, ids: randomIds() });
    let left = steps;
    for (const change of CHANGES) {
      const whole = store[change].bind(store) as (...args: unknown[]) => Promise<unknown>;
      const cut = async (...args: unknown[]): Promise<unknown> => {
        if (left-- <= 0) throw new Error('cut off');
        return whole(...args);
      };
      Object.assign(store, { [change]: cut });
    }
    await expect(createDemoWorld(store, 'c_1' as ChatId)).rejects.toThrow('cut off');
    await store.close();

    const parley = await open();
    const demo = await parley.getWorld(OWNER, 'demo');
    expect(demo.agents.map(({ id }) => id)).toEqual(['planner', 'writer', 'critic']);
    expect(demo.chats).toHaveLength(1);
    expect(demo.mainAgent).toBe('planner');
    await parley.close();
  },
);

test('a demo world that was deleted does not come back', async () => {
  const first = await open();
  await first.deleteWorld(OWNER, 'demo');
  await first.close();
  const second = await open();
  expect(await second.listWorlds(OWNER)).toEqual([]);
  await second.close();
});
