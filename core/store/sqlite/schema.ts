/** The tables on SQLite. `../postgres/schema.ts` has the same shape; a compile-time test holds the two together. */
import { sql } from 'drizzle-orm';
import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core';

const json = (name: string) => text(name);
const at = (name: string) => integer(name);

export const worlds = sqliteTable('worlds', {
  id: text('id').primaryKey(),
  shard: integer('shard').notNull().default(0),
  settings: json('settings').notNull(),
  rules: json('rules').notNull().default('[]'),
  spentTokens: integer('spent_tokens').notNull().default(0),
  spentUsd: real('spent_usd').notNull().default(0),
  grantedTokens: integer('granted_tokens').notNull().default(0),
  grantedUsd: real('granted_usd').notNull().default(0),
  nextSeq: integer('next_seq').notNull().default(1),
  rosterRev: integer('roster_rev').notNull().default(1),
  createdAt: at('created_at').notNull(),
  updatedAt: at('updated_at').notNull(),
});

export const agents = sqliteTable(
  'agents',
  {
    worldId: text('world_id').notNull(),
    id: text('id').notNull(),
    fold: text('fold').notNull(),
    position: integer('position').notNull(),
    rev: integer('rev').notNull(),
    body: json('body').notNull(),
  },
  (t) => [primaryKey({ columns: [t.worldId, t.id] }), uniqueIndex('agents_fold').on(t.worldId, t.fold)],
);

/** Every form that an agent has had: a turn points at the one it started with. */
export const agentRevisions = sqliteTable(
  'agent_revisions',
  {
    worldId: text('world_id').notNull(),
    agentId: text('agent_id').notNull(),
    rev: integer('rev').notNull(),
    body: json('body').notNull(),
  },
  (t) => [primaryKey({ columns: [t.worldId, t.agentId, t.rev] })],
);

export const chats = sqliteTable(
  'chats',
  {
    id: text('id').primaryKey(),
    worldId: text('world_id').notNull(),
    shard: integer('shard').notNull().default(0),
    title: text('title').notNull(),
    head: text('head'),
    parentChatId: text('parent_chat_id'),
    paused: integer('paused').notNull().default(0),
    nextSeq: integer('next_seq').notNull().default(1),
    humanSeq: integer('human_seq').notNull().default(0),
    ledger: json('ledger').notNull(),
    branch: integer('branch').notNull().default(0),
    /** Raised where what was read of the chat before no longer holds: another branch, a deleted message. */
    rev: integer('rev').notNull().default(0),
    spentTokens: integer('spent_tokens').notNull().default(0),
    spentUsd: real('spent_usd').notNull().default(0),
    grantedTokens: integer('granted_tokens').notNull().default(0),
    grantedUsd: real('granted_usd').notNull().default(0),
    createdAt: at('created_at').notNull(),
    updatedAt: at('updated_at').notNull(),
  },
  (t) => [index('chats_world').on(t.worldId, t.createdAt)],
);

export const events = sqliteTable(
  'events',
  {
    worldId: text('world_id').notNull(),
    seq: integer('seq').notNull(),
    type: text('type').notNull(),
    chatId: text('chat_id'),
    at: at('at').notNull(),
    data: json('data').notNull(),
    /** Of the message that the event holds, so that its text can be found and blanked. */
    messageId: text('message_id'),
  },
  (t) => [
    uniqueIndex('events_world_seq').on(t.worldId, t.seq),
    index('events_message').on(t.messageId).where(sql`message_id is not null`),
  ],
);

export const messages = sqliteTable(
  'messages',
  {
    chatId: text('chat_id').notNull(),
    seq: integer('seq').notNull(),
    id: text('id').notNull(),
    key: text('key'),
    parentId: text('parent_id'),
    branch: integer('branch').notNull().default(0),
    worldId: text('world_id').notNull(),
    senderKind: text('sender_kind').notNull(),
    body: json('body').notNull(),
  },
  (t) => [
    uniqueIndex('messages_chat_seq').on(t.chatId, t.seq),
    index('messages_branch').on(t.chatId, t.branch, t.seq),
    uniqueIndex('messages_id').on(t.id),
    uniqueIndex('messages_key').on(t.chatId, t.key).where(sql`key is not null`),
  ],
);

/** A chat's branches beside the first; the path of a branch is its parent's up to `fork_seq`, then its own messages. */
export const branches = sqliteTable(
  'branches',
  {
    chatId: text('chat_id').notNull(),
    id: integer('id').notNull(),
    parent: integer('parent').notNull(),
    forkSeq: integer('fork_seq').notNull(),
    forkMessageId: text('fork_message_id'),
    headId: text('head_id'),
    createdAt: at('created_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.chatId, t.id] })],
);

export const turns = sqliteTable(
  'turns',
  {
    id: text('id').primaryKey(),
    worldId: text('world_id').notNull(),
    chatId: text('chat_id').notNull(),
    agentId: text('agent_id').notNull(),
    agentRev: integer('agent_rev'),
    triggerId: text('trigger_id').notNull(),
    triggerSeq: integer('trigger_seq').notNull(),
    n: integer('n').notNull().default(0),
    reason: text('reason').notNull(),
    fromId: text('from_id').notNull(),
    hop: integer('hop').notNull(),
    ordinal: integer('ordinal').notNull(),
    state: text('state').notNull(),
    attempt: integer('attempt').notNull().default(0),
    crashes: integer('crashes').notNull().default(0),
    notBefore: at('not_before').notNull().default(0),
    error: json('error'),
    inputTokens: integer('input_tokens').notNull().default(0),
    outputTokens: integer('output_tokens').notNull().default(0),
    cachedTokens: integer('cached_tokens').notNull().default(0),
    reasoningTokens: integer('reasoning_tokens').notNull().default(0),
    usd: real('usd').notNull().default(0),
    calls: integer('calls').notNull().default(0),
    /** Calls that the provider did not count. */
    estimated: integer('estimated').notNull().default(0),
    queuedAt: at('queued_at').notNull(),
    startedAt: at('started_at'),
    endedAt: at('ended_at'),
  },
  (t) => [
    uniqueIndex('turns_key').on(t.chatId, t.agentId, t.triggerSeq, t.n),
    index('turns_open').on(t.chatId, t.state, t.triggerSeq).where(sql`state in ('queued', 'running', 'waiting')`),
    index('turns_open_agent')
      .on(t.chatId, t.agentId, t.triggerSeq, t.n)
      .where(sql`state in ('queued', 'running', 'waiting')`),
    index('turns_chat').on(t.chatId, t.queuedAt),
    index('turns_world').on(t.worldId),
  ],
);

export const turnSteps = sqliteTable(
  'turn_steps',
  {
    turnId: text('turn_id').notNull(),
    step: text('step').notNull(),
    status: text('status').notNull(),
    result: json('result'),
  },
  (t) => [primaryKey({ columns: [t.turnId, t.step] })],
);

export const approvals = sqliteTable(
  'approvals',
  {
    id: text('id').primaryKey(),
    worldId: text('world_id').notNull(),
    chatId: text('chat_id').notNull(),
    turnId: text('turn_id').notNull(),
    step: text('step').notNull(),
    agentId: text('agent_id').notNull(),
    kind: text('kind').notNull(),
    status: text('status').notNull(),
    argsHash: text('args_hash'),
    /** What a pending or approved request holds so that no other asks for it, such as a new agent's name. */
    slot: text('slot'),
    body: json('body').notNull(),
    resolution: json('resolution'),
    createdAt: at('created_at').notNull(),
    expiresAt: at('expires_at'),
  },
  (t) => [
    uniqueIndex('approvals_turn_step').on(t.turnId, t.step),
    uniqueIndex('approvals_slot').on(t.worldId, t.slot).where(sql`slot is not null`),
    index('approvals_turn').on(t.turnId),
    index('approvals_pending').on(t.worldId, t.createdAt).where(sql`status = 'pending'`),
  ],
);

export const grants = sqliteTable(
  'grants',
  {
    id: text('id').primaryKey(),
    worldId: text('world_id').notNull(),
    chatId: text('chat_id'),
    agentId: text('agent_id'),
    tool: text('tool').notNull(),
    body: json('body').notNull(),
    createdAt: at('created_at').notNull(),
  },
  (t) => [index('grants_world').on(t.worldId, t.tool)],
);

export const runs = sqliteTable(
  'runs',
  {
    id: text('id').primaryKey(),
    worldId: text('world_id').notNull(),
    chatId: text('chat_id').notNull(),
    state: text('state').notNull(),
    body: json('body').notNull(),
    createdAt: at('created_at').notNull(),
    endedAt: at('ended_at'),
  },
  (t) => [uniqueIndex('runs_active').on(t.chatId).where(sql`ended_at is null`)],
);

export const tasks = sqliteTable(
  'tasks',
  {
    id: text('id').primaryKey(),
    worldId: text('world_id').notNull(),
    chatId: text('chat_id').notNull(),
    parentChatId: text('parent_chat_id'),
    status: text('status').notNull(),
    body: json('body').notNull(),
    createdAt: at('created_at').notNull(),
    endedAt: at('ended_at'),
  },
  (t) => [index('tasks_world').on(t.worldId, t.createdAt)],
);

export const workers = sqliteTable('workers', {
  id: text('id').primaryKey(),
  leaseUntil: at('lease_until').notNull(),
});

/** A row only while a chat has runnable work. */
export const runQueue = sqliteTable(
  'run_queue',
  {
    chatId: text('chat_id').primaryKey(),
    worldId: text('world_id').notNull(),
    readyAt: at('ready_at').notNull(),
    owner: text('owner'),
    fence: integer('fence').notNull().default(0),
  },
  (t) => [index('run_queue_free').on(t.readyAt).where(sql`owner is null`)],
);

export const idempotencyKeys = sqliteTable(
  'idempotency_keys',
  {
    scope: text('scope').notNull(),
    key: text('key').notNull(),
    hash: text('hash').notNull(),
    answer: json('answer').notNull(),
    createdAt: at('created_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.scope, t.key] })],
);

export const tokens = sqliteTable('tokens', {
  id: text('id').primaryKey(),
  hash: text('hash').notNull().unique(),
  role: text('role').notNull(),
  label: text('label').notNull(),
  createdAt: at('created_at').notNull(),
});

/** Single values of the database itself, such as the boot counter and the search index's place. */
export const meta = sqliteTable('meta', { key: text('key').primaryKey(), value: text('value').notNull() });
