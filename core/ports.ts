/**
 * The only way out of `core/world`: what the world needs from stores, models, the bus and the machine.
 * Every store method is one whole transaction; shared code never holds one open.
 */
import type {
  AgentSettings,
  Approval,
  ApprovalKind,
  Chat,
  Grant,
  IgnoreReason,
  LimitName,
  Message,
  Notice,
  Question,
  ReasoningEffort,
  Resolution,
  Role,
  Routing,
  Rule,
  Sender,
  Token,
  ToolCall,
  Turn,
  Usage,
  WakeReason,
  World,
  WorldAgent,
  WorldSettings,
} from './protocol/entities.ts';
import type { EventDraft, StoredEvent, WorldEvent } from './protocol/events.ts';
import type { AgentId, ChatId, MessageId, TokenId, TurnId, WorldId } from './protocol/ids.ts';
import type { Posted, WorldUsage } from './protocol/requests.ts';

// ---------------------------------------------------------------- the machine

export interface Clock {
  /** Milliseconds since 1970; may jump. Order is `seq`, never this. */
  now(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after `ms`; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

export interface Ids {
  /** A fresh URL-safe id; `kind` is a short prefix such as `m` for messages. */
  make(kind: string): string;
}

export interface Log {
  debug(fields: Record<string, unknown>, message: string): void;
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

/** Who calls: set by the server from the authenticated token, never from a client's field. */
export interface Actor {
  tokenId: string;
  role: Role;
  /** The person's name in the room. */
  name: string;
}

// ---------------------------------------------------------------- the live bus

/** Carries events to whoever listens now. Losing one costs latency, never data: the log has it. */
export interface Bus {
  publish(event: WorldEvent): void;
  /** Returns the function that unsubscribes. A handler must not throw. */
  subscribe(world: string, handler: (event: WorldEvent) => void): () => void;
}

/** The text of a running turn so far, for a late joiner. */
export interface LiveText {
  chat: string;
  turnId: string;
  agentId: string;
  runId: string;
  /** The index that the next delta will have. */
  nextIndex: number;
  text: string;
  reasoning: string;
}

// ---------------------------------------------------------------- models

export type ModelMessage =
  | { role: 'user'; content: string }
  | {
      role: 'assistant';
      content: string;
      toolCalls: readonly { id: string; name: string; args: Record<string, unknown> }[];
      /** What the provider wants back unchanged inside one turn, such as signed thinking blocks. */
      providerState?: { provider: string; blocks: unknown };
    }
  | { role: 'tool'; results: readonly { id: string; name: string; content: string; isError: boolean }[] };

export interface ToolSpec {
  /** Matches ^[a-zA-Z0-9_-]{1,64}$ */
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

/** What the scripted model decides by; providers that talk to a real model ignore it. */
export interface Scene {
  agent: { id: string; name: string };
  /** Name of the sender of the triggering message. */
  from: string;
  /** Text of the triggering message as published. */
  text: string;
  /** How many turns this agent has had in this chat, this one included; starts at 1. */
  turn: number;
  /** Names of the other active agents of the world, in its order. */
  agents: readonly string[];
  /** Text of the last tool result of this turn, if its last step was one. */
  toolResult?: string;
}

export interface ModelRequest {
  /** The provider's own name of the model; for `script` the script. */
  model: string;
  system: string;
  messages: readonly ModelMessage[];
  tools: readonly ToolSpec[];
  maxTokens: number;
  temperature?: number;
  reasoningEffort?: Exclude<ReasoningEffort, 'inherit'>;
  scene: Scene;
}

/** Usage as the provider counted it; a provider that tells nothing leaves it out. */
export type TokenUsage = Pick<Usage, 'inputTokens' | 'outputTokens' | 'cachedTokens' | 'reasoningTokens'>;

/** The one stream shape of all providers. Exactly one `finish` ends a good stream. */
export type ModelPart =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  /** `args` is null where the model wrote no JSON object; `raw` is what it wrote. */
  | { type: 'toolCall'; id: string; name: string; args: Record<string, unknown> | null; raw: string }
  | {
      type: 'finish';
      stop: 'end' | 'tool' | 'length' | 'refused';
      usage?: TokenUsage;
      providerState?: { provider: string; blocks: unknown };
    };

/** One attempt; the turn does the retrying. Throws `ModelError`; stops at once when the signal aborts. */
export interface Model {
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelPart>;
}

export interface Models {
  /** Throws AppError `provider_unknown` or `missing_api_key` with what to set. Loads the provider's SDK lazily. */
  resolve(provider: string): Promise<Model>;
  /** What an agent without provider and model in a world without defaults gets. */
  defaults(): { provider: string; model: string };
}

// ---------------------------------------------------------------- the store: reading

/** Agents of a world in its order, with the revision that every change of the list or of one agent raises. */
export interface Roster {
  rev: number;
  world: World;
  agents: readonly WorldAgent[];
}

export interface PageQuery {
  before?: number;
  after?: number;
  /** At most 500; more is cut. */
  limit: number;
}

export interface Directory {
  listWorlds(): Promise<World[]>;
  getWorld(world: string): Promise<World | null>;
  roster(world: string): Promise<Roster | null>;
  listChats(world: string): Promise<Chat[]>;
  getChat(world: string, chat: string): Promise<Chat | null>;
  /** Rows ascending by seq; the newest page where neither bound is given. */
  messages(chat: string, page: PageQuery): Promise<{ messages: Message[]; next: number | null }>;
  getMessage(chat: string, message: string): Promise<Message | null>;
  /** Newest first, at most `limit`. */
  turns(chat: string, limit: number): Promise<Turn[]>;
  /** True when no turn of the chat is queued or running. */
  isIdle(chat: string): Promise<boolean>;
  usage(world: string): Promise<WorldUsage>;
  search(world: string, query: string, limit: number): Promise<Message[]>;
}

export interface EventLog {
  /** Events with seq > after, ascending. */
  read(world: string, after: number, limit: number): Promise<StoredEvent[]>;
  /** The newest seq of the world; null where there is no such world. */
  head(world: string): Promise<number | null>;
}

// ---------------------------------------------------------------- the store: changing

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
}

export interface HeldWake {
  messageId: MessageId;
  seq: number;
  agentId: AgentId;
  reason: WakeReason;
  hop: number;
  from: string;
  limit: LimitName;
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

// ---------------------------------------------------------------- the store: turns

export interface Claim {
  worldId: WorldId;
  chatId: ChatId;
  owner: string;
  fence: bigint;
}

/** A turn that its owner runs. */
export interface TurnWork {
  id: TurnId;
  worldId: WorldId;
  chatId: ChatId;
  agentId: AgentId;
  /** The agent as it was when the turn started; it keeps it across restarts. */
  agent: WorldAgent;
  trigger: { messageId: MessageId; seq: number; reason: WakeReason };
  /** Length of the chain of agent messages that led here; a human's message starts at 0. */
  hop: number;
  /** How many turns this agent has had in this chat, this one included. */
  ordinal: number;
  /** 1 for the first execution; more after a crash or an answered question, which then have a journal. */
  attempt: number;
}

export interface TurnQueue {
  /** Takes up to `n` chats that have runnable work and no owner. */
  claim(worker: string, n: number): Promise<Claim[]>;
  /**
   * Starts up to `n` queued turns of the chat, oldest first, skipping agents that have one running or waiting;
   * none while the chat is paused. Turns of agents that are gone or inactive end `stopped` on the way.
   */
  next(claim: Claim, n: number): Promise<Changed<TurnWork[]>>;
  /** Puts a running turn back into the queue, as if this execution had not been; for a worker that shuts down. */
  abandon(claim: Claim, turn: TurnId): Promise<void>;
  /** Gives the chat back; false while it has a turn that could start or is running. */
  release(claim: Claim): Promise<boolean>;
}

export interface Step {
  name: string;
  status: 'started' | 'done';
  result: unknown;
}

/** A finished step; `event` goes into the log in the same transaction. */
export interface StepRecord {
  step: string;
  result: unknown;
  event?: EventDraft;
}

export interface Journal {
  steps(turn: TurnId): Promise<Step[]>;
  /** Written before a step with side effects, with the event that tells of it. */
  begin(claim: Claim, turn: TurnId, step: string, event?: EventDraft): Promise<readonly StoredEvent[]>;
  /** Several finished steps in one transaction. A step that is done already keeps its first result. */
  record(claim: Claim, turn: TurnId, steps: readonly StepRecord[]): Promise<readonly StoredEvent[]>;
}

/** How a turn ends. */
export type TurnOutcome =
  | { state: 'done'; message: MessageDraft; plan: RoutePlan }
  | { state: 'silent' }
  /** `message`: text streamed before the failure or stop; it routes nowhere. */
  | {
      state: 'failed' | 'stopped';
      error: { code: string; message: string };
      message?: MessageDraft;
      notice?: MessageDraft;
      limits?: readonly LimitNotice[];
    };

export interface Commit {
  /** A message of a human, the world or the system, its receipt and its turns. */
  post(
    world: string,
    chat: string,
    input: { draft: MessageDraft; plan: RoutePlan; fromHuman: boolean; title?: string },
    idem?: Idempotency,
  ): Promise<Planned<Posted>>;
  /**
   * Fence check, reply, turn's end, events and next turns in ONE transaction. Up to `start` of the chat's
   * queued turns are started in it too, as `next` would.
   */
  commitTurn(
    claim: Claim,
    turn: TurnWork,
    outcome: TurnOutcome,
    usage: Usage,
    start: number,
  ): Promise<Planned<{ started: TurnWork[] }>>;
  /** Wakes one agent for a stored message, outside routing. Takes the next free number of (message, agent). */
  wake(
    world: string,
    chat: string,
    wake: { messageId: MessageId; agentId: AgentId; reason: WakeReason },
  ): Promise<Changed<Turn>>;
  /**
   * Goes on after a limit: `grant` is pure and says what the ledger becomes and which held wakes are queued;
   * null where nothing is held.
   */
  continueChat(
    world: string,
    chat: string,
    grant: (ledger: ChatLedger) => { ledger: ChatLedger; wakes: readonly HeldWake[] } | null,
  ): Promise<Changed<{ turns: Turn[] }> | null>;
  /** Ends every queued and waiting turn of the chat `stopped` and its pending approvals `cancelled`; running ones are the caller's. */
  dropQueued(world: string, chat: string): Promise<Changed<{ dropped: number }>>;
}

/** The claim is no longer this worker's, or the turn has ended: what it did since is refused. */
export class Fenced extends Error {
  override readonly name = 'Fenced';
}

export interface Lease {
  /** Voids claims of earlier processes; running turns go back to the queue, or end failed at the given number of crashes. */
  recover(maxCrashes: number): Promise<Changed<{ requeued: number; failed: number }>>;
}

// ---------------------------------------------------------------- tools and approvals

/** What a running tool call may know and do. Nothing of it is shared between calls. */
export interface ToolContext {
  worldId: WorldId;
  chatId: ChatId;
  turnId: TurnId;
  agent: WorldAgent;
  /** `turn#step`: the same after a crash, for tools that honour an idempotency key. */
  key: string;
  signal: AbortSignal;
  /** The tools that the calling agent may use, by name. */
  effective: readonly string[];
}

export interface ToolResult {
  content: string;
  isError: boolean;
}

/** What an approval shows: the real effect. */
export interface ToolQuestion {
  title: string;
  message: string;
  /** For `ask_user`; a tool's own question is yes or no. */
  questions?: Question[];
  /** Held until the call has ended, so that nobody else asks for the same thing. */
  slot?: string;
}

/** A tool as the world uses it. Arguments come parsed; what was approved runs as it was shown. */
export interface Tool {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>;
  /** `write` has side effects: after a crash in the middle it never runs again without a person's word. */
  effect: 'read' | 'write';
  /** A `write` that honours `context.key`: run twice it acts once. */
  isRepeatable?: true;
  /** `always` asks in every permission mode and no rule or grant can answer; `question` is answered by its resolution. */
  asks: 'by-permission' | 'always' | 'question';
  /** Canonical arguments, or what is wrong with them, for the model. Never changes its input. */
  parse(args: Record<string, unknown>): { ok: true; args: Record<string, unknown> } | { ok: false; result: ToolResult };
  /** May refuse before anybody is asked. */
  describe(
    args: Record<string, unknown>,
    context: ToolContext,
  ): Promise<{ ok: true; question: ToolQuestion } | { ok: false; result: ToolResult }>;
  run(args: Record<string, unknown>, context: ToolContext): Promise<ToolResult>;
  /** The result where another request holds the slot. */
  slotTaken?(args: Record<string, unknown>): ToolResult;
  /** The result of a call that was not allowed. */
  denied?(
    args: Record<string, unknown>,
    reason: 'user_denied' | 'timeout' | 'cancelled' | 'approval_unavailable',
    text?: string,
  ): ToolResult;
}

/** A question to a person, to be written in the transaction that parks the turn. */
export interface ApprovalDraft {
  step: string;
  kind: ApprovalKind;
  question: ToolQuestion;
  questions: Question[];
  defaultOptionId: string | null;
  tool?: string;
  args?: Record<string, unknown>;
  argsHash?: string;
  expiresAtMs?: number;
}

/** At most this many approvals of one agent wait at a time. */
export const MAX_PENDING_PER_AGENT = 3;

export interface Approvals {
  /**
   * Writes the questions (as many as the agent may still have pending) and parks the turn, in ONE transaction.
   * `slot_taken`: another request holds the slot of that step; nothing was written.
   */
  park(
    claim: Claim,
    turn: Pick<TurnWork, 'id' | 'agentId'>,
    asks: readonly ApprovalDraft[],
  ): Promise<{ ok: true; events: readonly StoredEvent[] } | { ok: false; step: string }>;
  approvalsOf(turn: TurnId): Promise<(Approval & { step: string })[]>;
  getApproval(world: string, id: string): Promise<Approval | null>;
  /** Oldest first; of every world where none is given. */
  listApprovals(filter: { world?: string; status?: Approval['status'] }, limit: number): Promise<Approval[]>;
  /**
   * The first decision wins, by compare-and-set; the turn is queued when none of its approvals is pending.
   * Null: it is no longer pending.
   */
  decide(
    world: string,
    id: string,
    decision: { status: 'answered' | 'denied' | 'expired'; resolution: Resolution; grant?: Omit<Grant, 'createdAt'> },
  ): Promise<Changed<Approval> | null>;
  /** Gives a slot back: the call that held it has ended. */
  releaseSlot(turn: TurnId, step: string): Promise<void>;
  /** The earliest expiry of a pending approval, and those that are due. */
  dueApprovals(nowMs: number): Promise<{ due: Approval[]; nextMs: number | null }>;
  listGrants(world: string): Promise<Grant[]>;
  findGrant(
    world: string,
    want: { chat: string; agent: string; tool: string; argsHash: string },
  ): Promise<Grant | null>;
  removeGrant(world: string, id: string): Promise<boolean>;
  rules(world: string): Promise<Rule[]>;
  setRules(world: string, rules: readonly Rule[]): Promise<void>;
}

// ---------------------------------------------------------------- the store: access and secrets

export interface Tokens {
  listTokens(): Promise<Token[]>;
  /** `hash` is SHA-256 in hex; the token itself is never stored. */
  addToken(token: { id: TokenId; role: Role; label: string; hash: string }): Promise<Token>;
  findToken(hash: string): Promise<Token | null>;
  removeToken(id: string): Promise<boolean>;
}

export interface Store extends Directory, EventLog, Mutations, TurnQueue, Journal, Commit, Lease, Approvals, Tokens {
  close(): Promise<void>;
}

export type Ignored = Routing['ignored'][number];
export type { IgnoreReason, Usage };
