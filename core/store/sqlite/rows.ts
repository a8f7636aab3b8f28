import type { ChatLedger } from '../../ports.ts';
import type { Chat, Message, Turn, Usage, WakeReason, World, WorldAgent } from '../../protocol/entities.ts';
import { AgentSettings, WorldSettings } from '../../protocol/entities.ts';
import type { StoredEvent } from '../../protocol/events.ts';
import type { AgentId, ChatId, MessageId, TurnId, WorldId } from '../../protocol/ids.ts';

export interface WorldRow {
  id: string;
  settings: string;
  roster_rev: number;
  created_at: number;
  updated_at: number;
}

export interface ChatRow {
  id: string;
  world_id: string;
  title: string;
  head: string | null;
  parent_chat_id: string | null;
  paused: number;
  next_seq: number;
  human_seq: number;
  ledger: string;
  branch: number;
  /** Raised where what was read of the chat before no longer holds. */
  rev: number;
  spent_tokens: number;
  spent_usd: number;
  granted_tokens: number;
  granted_usd: number;
  created_at: number;
  updated_at: number;
}

export interface TurnRow {
  id: string;
  world_id: string;
  chat_id: string;
  agent_id: string;
  agent_rev: number | null;
  trigger_id: string;
  trigger_seq: number;
  n: number;
  reason: string;
  from_id: string;
  hop: number;
  ordinal: number;
  state: string;
  attempt: number;
  crashes: number;
  error: string | null;
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  reasoning_tokens: number;
  usd: number;
  calls: number;
  estimated: number;
  queued_at: number;
  started_at: number | null;
  ended_at: number | null;
}

export interface EventRow {
  world_id: string;
  seq: number;
  type: string;
  chat_id: string | null;
  at: number;
  data: string;
}

export const iso = (ms: number): string => new Date(ms).toISOString();

/** Settings written before a field existed get its default. */
export function toWorld(row: WorldRow): World {
  const settings = WorldSettings.parse(JSON.parse(row.settings));
  return { ...settings, id: row.id as WorldId, createdAt: iso(row.created_at), updatedAt: iso(row.updated_at) };
}

const AGENT_DEFAULTS = AgentSettings.parse({ name: 'agent' });
/** An agent written before a field existed gets its default. */
export const toAgent = (body: string): WorldAgent => ({ ...AGENT_DEFAULTS, ...(JSON.parse(body) as WorldAgent) });
export const toMessage = (body: string): Message => JSON.parse(body) as Message;
export const toLedger = (json: string): ChatLedger => JSON.parse(json) as ChatLedger;

export function toChat(row: ChatRow): Chat {
  return {
    id: row.id as ChatId,
    worldId: row.world_id as WorldId,
    title: row.title,
    head: row.head as MessageId | null,
    parentChatId: row.parent_chat_id as ChatId | null,
    paused: row.paused !== 0,
    lastSeq: row.next_seq - 1,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}

export function toUsage(
  row: Pick<
    TurnRow,
    'input_tokens' | 'output_tokens' | 'cached_tokens' | 'reasoning_tokens' | 'usd' | 'calls' | 'estimated'
  >,
): Usage {
  return {
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    cachedTokens: row.cached_tokens,
    reasoningTokens: row.reasoning_tokens,
    usd: row.usd,
    calls: row.calls,
    ...(row.estimated > 0 ? { estimated: true as const } : {}),
  };
}

export function toTurn(row: TurnRow): Turn {
  return {
    id: row.id as TurnId,
    worldId: row.world_id as WorldId,
    chatId: row.chat_id as ChatId,
    agentId: row.agent_id as AgentId,
    state: row.state as Turn['state'],
    trigger: {
      messageId: row.trigger_id as MessageId,
      seq: row.trigger_seq,
      reason: row.reason as WakeReason,
    },
    attempt: row.attempt,
    ...(row.error === null ? {} : { error: JSON.parse(row.error) as { code: string; message: string } }),
    usage: toUsage(row),
    queuedAt: iso(row.queued_at),
    startedAt: row.started_at === null ? null : iso(row.started_at),
    endedAt: row.ended_at === null ? null : iso(row.ended_at),
  };
}

export function toEvent(row: EventRow): StoredEvent {
  return {
    type: row.type,
    seq: row.seq,
    world: row.world_id,
    ...(row.chat_id === null ? {} : { chat: row.chat_id }),
    at: iso(row.at),
    data: JSON.parse(row.data),
  } as StoredEvent;
}
