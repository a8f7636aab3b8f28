import type { Directory, EventLog } from '../../ports.ts';
import { EMPTY_USAGE, type Usage } from '../../protocol/entities.ts';
import { AppError } from '../../protocol/errors.ts';
import { MAX_PAGE } from '../../protocol/requests.ts';
import { type BranchPaths, readPath } from './branch-paths.ts';
import {
  type ChatRow,
  type EventRow,
  type TurnRow,
  toAgent,
  toChat,
  toEvent,
  toMessage,
  toTurn,
  toUsage,
  toWorld,
  type WorldRow,
} from './rows.ts';
import { searchMessages } from './search.ts';
import { OPEN, type Session } from './session.ts';

const clamp = (limit: number) => Math.max(1, Math.min(MAX_PAGE, Math.floor(limit)));

/** The reading half of the store. */
export function sqliteDirectory(session: Session, paths: BranchPaths): Directory & EventLog {
  const { one, all } = session;
  const findWorld = (world: string) => one<WorldRow>('select * from worlds where id = ?', world);
  return {
    async listWorlds() {
      return all<WorldRow>('select * from worlds order by created_at, id').map(toWorld);
    },
    async getWorld(world) {
      const row = findWorld(world);
      return row ? toWorld(row) : null;
    },
    async roster(world) {
      const row = findWorld(world);
      if (!row) return null;
      const agents = all<{ body: string }>('select body from agents where world_id = ? order by position', world);
      return { rev: row.roster_rev, world: toWorld(row), agents: agents.map((agent) => toAgent(agent.body)) };
    },
    async listChats(world) {
      return all<ChatRow>('select * from chats where world_id = ? order by created_at, id', world).map(toChat);
    },
    async getChat(world, chat) {
      const row = one<ChatRow>('select * from chats where id = ? and world_id = ?', chat, world);
      return row ? toChat(row) : null;
    },
    async messages(chat, page) {
      const path = page.head === undefined ? paths.active(chat) : paths.upTo(chat, page.head);
      return readPath(session, chat, path, { ...page, limit: clamp(page.limit) });
    },
    async getMessage(chat, message) {
      const row = one<{ body: string }>('select body from messages where id = ? and chat_id = ?', message, chat);
      return row ? toMessage(row.body) : null;
    },
    async turns(chat, limit) {
      return all<TurnRow>(
        'select * from turns where chat_id = ? order by queued_at desc, rowid desc limit ?',
        chat,
        clamp(limit),
      ).map(toTurn);
    },
    async isIdle(chat) {
      return !one(
        `select 1 from turns indexed by turns_open where chat_id = ? and ${OPEN} and state <> 'waiting' limit 1`,
        chat,
      );
    },
    async usage(world) {
      const sums = all<TurnRow>(
        `select agent_id, chat_id, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,
           sum(cached_tokens) as cached_tokens, sum(reasoning_tokens) as reasoning_tokens, sum(usd) as usd,
           sum(calls) as calls, sum(estimated) as estimated from turns where world_id = ? group by agent_id, chat_id`,
        world,
      );
      const agents = new Map<string, Usage>();
      const chats = new Map<string, Usage>();
      let total = EMPTY_USAGE;
      for (const row of sums) {
        const usage = toUsage(row);
        total = addUsage(total, usage);
        agents.set(row.agent_id, addUsage(agents.get(row.agent_id) ?? EMPTY_USAGE, usage));
        chats.set(row.chat_id, addUsage(chats.get(row.chat_id) ?? EMPTY_USAGE, usage));
      }
      return { total, agents: Object.fromEntries(agents), chats: Object.fromEntries(chats) };
    },
    async budgetTotals(chat) {
      const row = one<Record<'ct' | 'cu' | 'cgt' | 'cgu' | 'wt' | 'wu' | 'wgt' | 'wgu', number>>(
        `select c.spent_tokens as ct, c.spent_usd as cu, c.granted_tokens as cgt, c.granted_usd as cgu,
           w.spent_tokens as wt, w.spent_usd as wu, w.granted_tokens as wgt, w.granted_usd as wgu
         from chats c join worlds w on w.id = c.world_id where c.id = ?`,
        chat,
      );
      if (!row) throw new AppError('not_found', `there is no chat ${JSON.stringify(chat)}`);
      return {
        chat: { spent: { tokens: row.ct, usd: row.cu }, granted: { tokens: row.cgt, usd: row.cgu } },
        world: { spent: { tokens: row.wt, usd: row.wu }, granted: { tokens: row.wgt, usd: row.wgu } },
      };
    },
    search: (world, query, limit) => searchMessages(session, world, query, clamp(limit)),
    async read(world, after, limit) {
      return all<EventRow>(
        'select * from events where world_id = ? and seq > ? order by seq limit ?',
        world,
        after,
        Math.max(1, Math.min(5000, limit)),
      ).map(toEvent);
    },
    async head(world) {
      const row = one<{ next_seq: number }>('select next_seq from worlds where id = ?', world);
      return row ? row.next_seq - 1 : null;
    },
  };
}

function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    usd: a.usd + b.usd,
    calls: a.calls + b.calls,
    ...(a.estimated || b.estimated ? { estimated: true } : {}),
  };
}
