import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { randomIds, systemClock } from '../../machine.ts';
import { packageRoot } from '../../paths.ts';
import { type ChatLedger, Fenced, type RoutePlan } from '../../ports.ts';
import { AgentSettings, EMPTY_USAGE, WorldSettings } from '../../protocol/entities.ts';
import type { AgentId, ChatId, MessageId, WorldId } from '../../protocol/ids.ts';
import { openSqliteStore, type SqliteStore } from './index.ts';

const migrations = join(packageRoot(), 'drizzle', 'sqlite');
const ids = randomIds();
const W = 'w' as WorldId;
const C = 'c' as ChatId;
let folder: string;
let store: SqliteStore;

const open = () => openSqliteStore({ file: join(folder, 'p.db'), migrations, clock: systemClock, ids });
const human = { kind: 'human', id: 'owner', name: 'Ann' } as const;

/** A plan that wakes the given agents without limits. */
async function planFor(agents: readonly string[], ledger?: Partial<ChatLedger>): Promise<RoutePlan> {
  const roster = await store.roster(W);
  return {
    rosterRev: roster?.rev ?? 0,
    candidates: agents as AgentId[],
    count: { turns: true, pairs: true },
    decide: (before) => ({
      routing: { woke: agents.map((id) => ({ agentId: id as AgentId, reason: 'address' as const })), ignored: [] },
      wakes: agents.map((id) => ({ agentId: id as AgentId, reason: 'address' as const, hop: 0 })),
      ledger: { ...before, ...ledger },
      limits: [],
    }),
  };
}
async function say(content: string, agents: readonly string[], key?: string) {
  const posted = await store.post(
    W,
    C,
    {
      draft: { id: ids.make('m') as MessageId, sender: human, content, status: 'complete' },
      plan: await planFor(agents),
      fromHuman: true,
    },
    key === undefined ? undefined : { scope: 's', key, hash: content },
  );
  if (!posted.ok) throw new Error(posted.reason);
  return posted.changed;
}
async function claim() {
  const [first] = await store.claim('me', 1);
  if (!first) throw new Error('nothing to claim');
  return first;
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'parley-store-'));
  store = await open();
  await store.createWorld(W, WorldSettings.parse({ name: 'w' }));
  for (const id of ['a', 'b']) {
    await store.createAgent(W, {
      id: id as AgentId,
      fold: id,
      source: 'world',
      settings: AgentSettings.parse({ name: id }),
    });
  }
  await store.createChat(W, { id: C, title: '' });
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

describe('the log', () => {
  test('numbers events without a gap, in the order of the changes', async () => {
    await say('one', ['a']);
    const held = await claim();
    const started = await store.next(held, 8);
    for (const work of started.value) {
      await store.commitTurn(
        held,
        work,
        {
          state: 'done',
          plan: await planFor(['b']),
          message: {
            id: ids.make('m') as MessageId,
            sender: { kind: 'agent', id: 'a', name: 'a' },
            content: 'hi',
            status: 'complete',
          },
        },
        EMPTY_USAGE,
        1,
      );
    }
    const events = await store.read(W, 0, 1000);
    expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1));
    expect(events.map((event) => event.type)).toEqual([
      ...['agent.created', 'agent.created', 'chat.created', 'message.created', 'turn.queued', 'turn.started'],
      ...['message.created', 'turn.done', 'turn.queued', 'turn.started'],
    ]);
    expect(await store.head(W)).toBe(events.length);
    const replay = await store.read(W, 4, 2);
    expect(replay.map((event) => event.seq)).toEqual([5, 6]);
  });

  test('a message is in the log and in the chat with the same content, seq and parent', async () => {
    const first = (await say('one', [])).value.message;
    const second = (await say('two', [])).value.message;
    const page = await store.messages(C, { limit: 10 });
    expect(page.messages).toEqual([first, second]);
    expect(second.parentId).toBe(first.id);
    const created = (await store.read(W, 0, 100)).filter((event) => event.type === 'message.created');
    expect(created.map((event) => event.data.message)).toEqual([first, second]);
  });
});

describe('paging', () => {
  test('reads pages backwards and forwards by seq, and says where the page before begins', async () => {
    for (let index = 1; index <= 7; index++) await say(`m${index}`, []);
    const newest = await store.messages(C, { limit: 3 });
    expect(newest.messages.map((message) => message.seq)).toEqual([5, 6, 7]);
    expect(newest.next).toBe(5);
    const older = await store.messages(C, { limit: 3, before: newest.next ?? 0 });
    expect(older.messages.map((message) => message.seq)).toEqual([2, 3, 4]);
    const oldest = await store.messages(C, { limit: 3, before: older.next ?? 0 });
    expect([oldest.messages.length, oldest.next]).toEqual([1, null]);
    expect((await store.messages(C, { limit: 3, after: 5 })).messages.map((message) => message.seq)).toEqual([6, 7]);
  });
});

describe('turns', () => {
  test('one agent has one turn at a time; its next one starts when the first has ended', async () => {
    await say('one', ['a', 'b']);
    await say('two', ['a']);
    const held = await claim();
    const first = await store.next(held, 10);
    expect(first.value.map((work) => work.agentId).sort()).toEqual(['a', 'b']);
    expect((await store.next(held, 10)).value).toEqual([]);
    expect(await store.release(held)).toBe(false);
    const a = first.value.find((work) => work.agentId === 'a');
    if (!a) throw new Error('a has no turn');
    const ended = await store.commitTurn(held, a, { state: 'silent' }, EMPTY_USAGE, 4);
    if (!ended.ok) throw new Error(ended.reason);
    expect(ended.changed.value.started.map((work) => [work.agentId, work.trigger.seq, work.ordinal])).toEqual([
      ['a', 2, 2],
    ]);
  });

  test('a second end of the same turn is refused and writes nothing', async () => {
    await say('one', ['a']);
    const held = await claim();
    const [work] = (await store.next(held, 1)).value;
    if (!work) throw new Error('no turn');
    await store.commitTurn(held, work, { state: 'silent' }, EMPTY_USAGE, 0);
    const before = await store.head(W);
    await expect(store.commitTurn(held, work, { state: 'silent' }, EMPTY_USAGE, 0)).rejects.toBeInstanceOf(Fenced);
    expect(await store.head(W)).toBe(before);
  });

  test('a worker that lost its claim is refused', async () => {
    await say('one', ['a']);
    const held = await claim();
    const [work] = (await store.next(held, 1)).value;
    if (!work) throw new Error('no turn');
    await store.recover(3);
    await expect(store.commitTurn(held, work, { state: 'silent' }, EMPTY_USAGE, 0)).rejects.toBeInstanceOf(Fenced);
    await expect(store.record(held, work.id, [{ step: 'model:0', result: {} }])).rejects.toBeInstanceOf(Fenced);
  });

  test('a plan made on an older roster is refused whole', async () => {
    const plan = await planFor(['a']);
    await store.patchAgent(W, 'b', { status: 'inactive' });
    const before = await store.head(W);
    const draft = { id: ids.make('m') as MessageId, sender: human, content: 'x', status: 'complete' as const };
    expect(await store.post(W, C, { draft, plan, fromHuman: true })).toEqual({ ok: false, reason: 'stale' });
    expect(await store.head(W)).toBe(before);
  });

  test('muting or removing an agent ends its queued turns visibly', async () => {
    await say('one', ['a', 'b']);
    const muted = await store.patchAgent(W, 'a', { status: 'inactive' });
    expect(muted.events.map((event) => event.type)).toEqual(['agent.updated', 'turn.stopped']);
    const removed = await store.removeAgent(W, 'b');
    expect(removed.events.map((event) => event.type)).toEqual(['agent.removed', 'turn.stopped']);
    expect(await store.isIdle(C)).toBe(true);
  });

  test('a started turn keeps the agent that it started with', async () => {
    await say('one', ['a']);
    await store.patchAgent(W, 'a', { systemPrompt: 'first' });
    const held = await claim();
    const [work] = (await store.next(held, 1)).value;
    await store.patchAgent(W, 'a', { systemPrompt: 'second' });
    expect(work?.agent.systemPrompt).toBe('first');
    await store.recover(3);
    const again = await claim();
    const [resumed] = (await store.next(again, 1)).value;
    expect([resumed?.agent.systemPrompt, resumed?.attempt]).toEqual(['first', 2]);
  });

  test('a paused chat takes messages and starts nothing until it goes on', async () => {
    await store.patchChat(W, C, { paused: true });
    await say('one', ['a']);
    const held = await claim();
    expect((await store.next(held, 1)).value).toEqual([]);
    expect(await store.release(held)).toBe(true);
    await store.patchChat(W, C, { paused: false });
    expect((await store.next(await claim(), 1)).value).toHaveLength(1);
  });

  test('a turn that was running at too many crashes ends failed, with a word in the room', async () => {
    await say('one', ['a']);
    for (let attempt = 1; attempt <= 2; attempt++) {
      const held = await claim();
      expect((await store.next(held, 1)).value[0]?.attempt).toBe(attempt);
      await store.recover(2);
    }
    expect(await store.isIdle(C)).toBe(true);
    const last = (await store.messages(C, { limit: 1 })).messages[0];
    expect(last?.notice).toMatchObject({ kind: 'turn_failed', error: 'interrupted' });
    expect((await store.turns(C, 5))[0]).toMatchObject({ state: 'failed', error: { code: 'interrupted' } });
  });
});

describe('idempotency', () => {
  test('a repeated key answers the first answer once, also after a restart', async () => {
    const first = await say('hello', ['a'], 'k1');
    await store.close();
    store = await open();
    const again = await say('hello', ['a'], 'k1');
    expect(again.value).toEqual(first.value);
    expect(again.events).toEqual([]);
    expect((await store.messages(C, { limit: 10 })).messages).toHaveLength(1);
  });

  test('a key with another body is refused', async () => {
    await say('hello', [], 'k1');
    await expect(say('other', [], 'k1')).rejects.toMatchObject({ code: 'idempotency_mismatch' });
  });
});

describe('deleting and searching', () => {
  test('finds words of any script in the active messages, and nothing of a deleted chat', async () => {
    await say('the quick brown fox', []);
    await say('привет мир "quoted" OR 小明', []);
    expect((await store.search(W, 'brown fo', 10)).map((message) => message.seq)).toEqual([1]);
    expect((await store.search(W, 'мир', 10)).map((message) => message.seq)).toEqual([2]);
    expect(await store.search(W, '"" AND ( NEAR', 10)).toEqual([]);
    await store.patchChat(W, C, { title: 'all about the fox' });
    await store.post(
      W,
      C,
      {
        draft: { id: ids.make('m') as MessageId, sender: human, content: 'a kept fox', status: 'complete' },
        plan: await planFor([]),
        fromHuman: true,
      },
      { scope: JSON.stringify(['owner', 'POST', 'messages', W, C]), key: 'k', hash: 'h' },
    );
    await store.deleteChat(W, C);
    await store.close();
    const db = new Database(join(folder, 'p.db'));
    for (const [table, column] of [
      ['events', 'data'],
      ['idempotency_keys', 'answer'],
      ['messages', 'body'],
      ['chats', 'title'],
    ]) {
      const rows = db.prepare(`select ${column} as text from ${table}`).all() as { text: string }[];
      expect(
        rows.filter(({ text }) => text.includes('fox')),
        table,
      ).toEqual([]);
    }
    db.close();
    store = await open();
    expect(await store.search(W, 'fox', 10)).toEqual([]);
    const events = await store.read(W, 0, 100);
    expect(JSON.stringify(events)).not.toContain('fox');
    expect(events.at(-1)?.type).toBe('chat.deleted');
    await store.createChat(W, { id: 'c2' as ChatId, title: '' });
    const draft = { id: ids.make('m') as MessageId, sender: human, content: 'a new fox', status: 'complete' as const };
    await store.post(W, 'c2', { draft, plan: await planFor([]), fromHuman: true });
    expect(await store.search(W, 'fox', 10)).toHaveLength(1);
  });
});

describe('the file', () => {
  test('has one server at a time', async () => {
    await expect(open()).rejects.toMatchObject({ code: 'busy' });
  });

  test('is readable by its owner alone', () => {
    expect(statSync(join(folder, 'p.db')).mode & 0o077).toBe(0);
  });

  test.each([
    ['no database at all', () => Buffer.from('this is a letter, not a database. '.repeat(20))],
    ['a shorter file than its header says', (good: Buffer) => good.subarray(0, 4096 + 100)],
    ['a database of another program', () => foreignDatabase()],
    ['a database of a newer version', (good: Buffer) => withByte(good, 63, 99)],
  ])('refuses %s and leaves it as it is', async (_, make) => {
    await store.close();
    const file = join(folder, 'p.db');
    const bad = make(readFileSync(file));
    writeFileSync(file, bad);
    await expect(open()).rejects.toMatchObject({ code: 'invalid' });
    expect(readFileSync(file).equals(bad)).toBe(true);
    rmSync(file);
    store = await open();
  });

  function foreignDatabase(): Buffer {
    const file = join(folder, 'foreign.db');
    const db = new Database(file);
    db.exec('create table notes (id integer primary key)');
    db.close();
    return readFileSync(file);
  }
  function withByte(bytes: Buffer, offset: number, value: number): Buffer {
    const copy = Buffer.from(bytes);
    copy[offset] = value;
    return copy;
  }
});

describe('what must not outlive its reason', () => {
  test('a world that is made again under its old id has its own agents, not the old ones', async () => {
    const make = async (prompt: string) => {
      await store.deleteWorld(W);
      await store.createWorld(W, WorldSettings.parse({ name: 'w' }));
      const settings = AgentSettings.parse({ name: 'a', systemPrompt: prompt });
      await store.createAgent(W, { id: 'a' as AgentId, fold: 'a', source: 'world', settings });
      await store.createChat(W, { id: C, title: '' });
      await say('hello', ['a']);
      const { value } = await store.next(await claim(), 1);
      return value[0]?.agent.systemPrompt;
    };
    expect(await make('first')).toBe('first');
    expect(await make('second')).toBe('second');
  });

  test('a wake that a limit held back does not start an agent that was muted meanwhile', async () => {
    const { value } = await say('hello', []);
    const held = { messageId: value.message.id, seq: 1, agentId: 'a' as AgentId, hop: 1, from: 'b' };
    await store.patchAgent(W, 'a', { status: 'inactive' });
    await store.continueChat(W, C, (ledger) => ({
      ledger,
      wakes: [{ ...held, reason: 'address', limit: 'turnLimit' }],
      grant: { chat: { tokens: 0, usd: 0 }, world: { tokens: 0, usd: 0 } },
    }));
    const { value: started, events } = await store.next(await claim(), 8);
    expect(started).toEqual([]);
    expect(events).toMatchObject([{ type: 'turn.stopped', data: { turn: { error: { code: 'agent_removed' } } } }]);
  });
});

test('opens a database whose process was killed while it moved its log into the file', async () => {
  const file = join(folder, 'p.db');
  for (let n = 0; n < 40; n++) await say('x'.repeat(20_000), []);
  const before = readFileSync(file);
  const log = readFileSync(`${file}-wal`);
  await store.close();
  // The first page, with the new size in its header, is written before the pages that make the file that long.
  const half = Buffer.concat([readFileSync(file).subarray(0, 4096), before.subarray(4096)]);
  expect(half.length).toBeLessThan(statSync(file).size);
  writeFileSync(file, half);
  writeFileSync(`${file}-wal`, log);
  store = await open();
  expect((await store.messages(C, { limit: 100 })).messages).toHaveLength(40);
});
