/** What the server, the command line and embedding programs call. `core/index.ts` builds one. */
import type { Actor, Bus, EventLog, Idempotency, LiveText, Log, PageQuery } from './ports.ts';
import type {
  AgentSettings,
  Approval,
  Branch,
  Chat,
  Grant,
  Message,
  ProviderStatus,
  Role,
  Rule,
  Token,
  Turn,
  World,
  WorldAgent,
  WorldSettings,
} from './protocol/entities.ts';
import type {
  AnswerApproval,
  AnsweredApproval,
  CreateAgent,
  CreatedToken,
  MessagePage,
  Posted,
  ProviderTest,
  WorldDetail,
  WorldUsage,
} from './protocol/requests.ts';

/**
 * All methods throw AppError: `not_found` for ids that do not exist, `forbidden` for a role that may not,
 * `invalid…` for broken input, `conflict`, `…_exists`, `idempotency_mismatch`, `storage_full`.
 * Viewers read; members also talk, stop, continue and forward; owners change everything.
 */
export interface Parley {
  readonly version: string;
  readonly log: Log;
  readonly bus: Bus;
  readonly events: EventLog;

  listWorlds(actor: Actor): Promise<World[]>;
  createWorld(actor: Actor, input: WorldSettings, idem?: Idempotency): Promise<World>;
  getWorld(actor: Actor, world: string): Promise<WorldDetail>;
  patchWorld(actor: Actor, world: string, patch: Partial<WorldSettings>): Promise<World>;
  deleteWorld(actor: Actor, world: string): Promise<void>;
  usage(actor: Actor, world: string): Promise<WorldUsage>;
  search(actor: Actor, world: string, query: string, limit: number): Promise<Message[]>;

  listAgents(actor: Actor, world: string): Promise<WorldAgent[]>;
  createAgent(actor: Actor, world: string, input: CreateAgent, idem?: Idempotency): Promise<WorldAgent>;
  getAgent(actor: Actor, world: string, agent: string): Promise<WorldAgent>;
  patchAgent(actor: Actor, world: string, agent: string, patch: Partial<AgentSettings>): Promise<WorldAgent>;
  removeAgent(actor: Actor, world: string, agent: string): Promise<void>;

  listChats(actor: Actor, world: string): Promise<Chat[]>;
  createChat(actor: Actor, world: string, input: { title?: string | undefined }, idem?: Idempotency): Promise<Chat>;
  getChat(actor: Actor, world: string, chat: string): Promise<Chat>;
  /** `head` makes the branch with this message active; running turns are stopped first. */
  patchChat(
    actor: Actor,
    world: string,
    chat: string,
    patch: { title?: string | undefined; head?: string | undefined },
  ): Promise<Chat>;
  deleteChat(actor: Actor, world: string, chat: string): Promise<void>;
  branches(actor: Actor, world: string, chat: string): Promise<Branch[]>;
  /** A new chat with copies of the path up to a message. */
  forkChat(actor: Actor, world: string, chat: string, message: string, idem?: Idempotency): Promise<Chat>;
  /** Says a person's message anew on a new branch; running turns are stopped first. Members edit their own. */
  editMessage(
    actor: Actor,
    world: string,
    chat: string,
    message: string,
    content: string,
    idem?: Idempotency,
  ): Promise<Posted>;
  /** Blanks what was said; turns go on. Members delete their own. */
  deleteMessage(actor: Actor, world: string, chat: string, message: string): Promise<void>;
  /** Wakes the agent of a message again, or all that a person's message woke, on a new branch. */
  regenerate(
    actor: Actor,
    world: string,
    chat: string,
    message: string,
    idem?: Idempotency,
  ): Promise<{ turns: Turn[] }>;
  /** A new turn for what a failed or stopped one was to answer. */
  retryTurn(actor: Actor, world: string, chat: string, turn: string, idem?: Idempotency): Promise<Turn>;

  messages(actor: Actor, world: string, chat: string, page: PageQuery): Promise<MessagePage>;
  post(actor: Actor, world: string, chat: string, content: string, idem?: Idempotency): Promise<Posted>;
  forward(
    actor: Actor,
    world: string,
    chat: string,
    message: string,
    agentId: string,
    idem?: Idempotency,
  ): Promise<Turn>;
  turns(actor: Actor, world: string, chat: string): Promise<Turn[]>;
  /** Resolves true when no turn of the chat is queued or running, false at the timeout or abort. */
  whenIdle(actor: Actor, world: string, chat: string, timeoutMs: number, signal?: AbortSignal): Promise<boolean>;
  /** Ends every turn of the chat; answers when that is so. */
  stop(actor: Actor, world: string, chat: string): Promise<{ stopped: number }>;
  pause(actor: Actor, world: string, chat: string): Promise<Chat>;
  resume(actor: Actor, world: string, chat: string): Promise<Chat>;
  continueChat(actor: Actor, world: string, chat: string): Promise<{ turns: Turn[] }>;
  /** Of every world where none is named: the inbox. Oldest first, at most 500. */
  listApprovals(
    actor: Actor,
    world: string | undefined,
    status?: Approval['status'],
    chat?: string,
  ): Promise<Approval[]>;
  getApproval(actor: Actor, world: string, id: string): Promise<Approval>;
  /** The first valid answer wins; a later one is not accepted and shows the final state. */
  answerApproval(
    actor: Actor,
    world: string,
    id: string,
    input: AnswerApproval,
    idem?: Idempotency,
  ): Promise<AnsweredApproval>;
  listGrants(actor: Actor, world: string): Promise<Grant[]>;
  removeGrant(actor: Actor, world: string, id: string): Promise<void>;
  rules(actor: Actor, world: string): Promise<Rule[]>;
  setRules(actor: Actor, world: string, rules: readonly Rule[]): Promise<Rule[]>;
  /** Text of running turns so far, for a late joiner. */
  liveText(world: string, chat?: string): readonly LiveText[];

  listProviders(actor: Actor): Promise<ProviderStatus[]>;
  setProvider(
    actor: Actor,
    provider: string,
    input: { apiKey?: string | null | undefined; baseUrl?: string | null | undefined },
  ): Promise<ProviderStatus>;
  testProvider(actor: Actor, provider: string, model: string | undefined, signal: AbortSignal): Promise<ProviderTest>;

  /** Null for a token that nobody has. */
  authenticate(token: string): Promise<Actor | null>;
  listTokens(actor: Actor): Promise<Token[]>;
  createToken(actor: Actor, input: { role: Role; label: string }, idem?: Idempotency): Promise<CreatedToken>;
  removeToken(actor: Actor, id: string): Promise<void>;

  /** Stops claiming, aborts or finishes running turns, closes the store. Idempotent. */
  close(): Promise<void>;
}

export type { Actor, LiveText };
