/** The store’s changes of worlds, agents and chats, and what a routing plan is. */
import type {
  AgentSettings,
  Chat,
  LimitName,
  Message,
  Notice,
  Routing,
  Sender,
  ToolCall,
  Usage,
  WakeReason,
  World,
  WorldAgent,
  WorldSettings,
} from '../protocol/entities.ts';
import type { StoredEvent } from '../protocol/events.ts';
import type { AgentId, ChatId, MessageId, TurnId, WorldId } from '../protocol/ids.ts';

/** A creating call's key: the same key and hash gives the stored answer, another hash is a mismatch. */
export interface Idempotency {
  /** Who calls what: token, method and path. */
  scope: string;
  key: string;
  /** Hash of the body. */
  hash: string;
}

export interface NewAgent {
  id: AgentId;
  fold: string;
  source: WorldAgent['source'];
  settings: AgentSettings;
  createdBy?: AgentId;
  ceiling?: string[];
}

/** Every change answers with the events that it wrote, for the bus. */
export interface Changed<T> {
  value: T;
  events: readonly StoredEvent[];
}

export interface Mutations {
  /** `conflict`: a world with this id exists. */
  createWorld(id: WorldId, settings: WorldSettings, idem?: Idempotency): Promise<Changed<World>>;
  patchWorld(world: string, patch: Partial<WorldSettings>): Promise<Changed<World>>;
  deleteWorld(world: string): Promise<Changed<null>>;
  createAgent(world: string, agent: NewAgent, idem?: Idempotency): Promise<Changed<WorldAgent>>;
  patchAgent(world: string, agent: string, patch: Partial<AgentSettings>): Promise<Changed<WorldAgent>>;
  /** Its queued turns end `stopped` with `agent_removed`. */
  removeAgent(world: string, agent: string): Promise<Changed<null>>;
  createChat(
    world: string,
    chat: { id: ChatId; title: string; parentChatId?: ChatId },
    idem?: Idempotency,
  ): Promise<Changed<Chat>>;
  patchChat(world: string, chat: string, patch: { title?: string; paused?: boolean }): Promise<Changed<Chat>>;
  deleteChat(world: string, chat: string): Promise<Changed<null>>;
}

/** What limits count, per chat, since the last message of a real human. */
export interface ChatLedger {
  /** Agent turns in all. */
  total: number;
  /** How much `continue` has added to each limit. */
  granted: Partial<Record<LimitName, number>>;
  /** Limits that the room has already been told about. */
  told: LimitName[];
  /** Wakes that a limit held back, for `continue`. */
  held: HeldWake[];
  /** Pairs that rest, by their two ids joined with a space, until this time in ms. */
  resting: Record<string, number>;
  /** Budgets that the room has been told of since, each with the height at which it was reached. */
  toldBudget?: Partial<Record<LimitName, string>>;
}

/** A chat in which nothing has been counted. */
export function freshLedger(): ChatLedger {
  return { total: 0, granted: {}, told: [], held: [], resting: {} };
}

export interface HeldWake {
  messageId: MessageId;
  seq: number;
  agentId: AgentId;
  reason: WakeReason;
  hop: number;
  from: string;
  limit: LimitName;
  /** For a budget: where it stood. */
  budget?: { unit: 'tokens' | 'usd'; max: number };
}

/** What the store counts for a plan inside its transaction. */
export interface Counts {
  /** Turns of each candidate since the last human message. */
  turnsOf: ReadonlyMap<string, number>;
  /** Turns between the sender and each candidate, both ways, within the last 60 s. */
  pairOf: ReadonlyMap<string, number>;
}

/**
 * A routing made from a roster before the transaction. The store refuses it (`stale`) when the roster's
 * revision has moved on, counts what `count` asks for, and calls `decide`, which is pure and synchronous.
 */
export interface RoutePlan {
  rosterRev: number;
  candidates: readonly AgentId[];
  /** Leave out what no limit needs; the store then makes no query for it. */
  count: { turns: boolean; pairs: boolean };
  decide(ledger: ChatLedger, counts: Counts): RouteDecision;
}

export interface RouteDecision {
  routing: Routing;
  wakes: readonly { agentId: AgentId; reason: WakeReason; hop: number }[];
  ledger: ChatLedger;
  /** System messages for the room, after the routed message; one `limit.reached` event each. */
  limits: readonly LimitNotice[];
}

export interface LimitNotice {
  limit: LimitName;
  used: number;
  max: number;
  unit?: 'tokens' | 'usd';
  agentId?: AgentId;
  text: string;
}

export interface MessageDraft {
  id: MessageId;
  sender: Sender;
  content: string;
  reasoning?: string;
  toolCalls?: ToolCall[];
  replyTo?: MessageId;
  turnId?: TurnId;
  usage?: Usage;
  notice?: Notice;
  status: Message['status'];
}

/** `stale`: the roster moved on; plan again. */
export type Planned<T> = { ok: true; changed: Changed<T> } | { ok: false; reason: 'stale' };

export type Ignored = Routing['ignored'][number];
