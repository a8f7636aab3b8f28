import { z } from 'zod';
import { AgentId, ApprovalId, ChatId, GrantId, MessageId, TokenId, TurnId, WorldId } from './ids.ts';

const Timestamp = z.iso.datetime().describe('ISO 8601 in UTC');
/** A counting limit; null is none. */
const Limit = z.int().min(1).max(1_000_000).nullable();

export const Budget = z.strictObject({
  tokens: z.int().positive().optional(),
  usd: z.number().positive().optional(),
});
export type Budget = z.infer<typeof Budget>;

export const WorldSettings = z.strictObject({
  name: z.string().trim().min(1).max(100),
  description: z.string().max(8192).default(''),
  turnLimit: Limit.default(5).describe('turns of one agent since the last human message'),
  hopLimit: Limit.default(20).describe('length of a chain of agent messages'),
  pairLimit: Limit.default(20).describe('messages between two agents within 60 s'),
  chatTurnLimit: Limit.default(200).describe('agent turns of a chat since the last human message'),
  mainAgent: z.string().min(1).max(128).nullable().default(null),
  humanMentions: z.enum(['anywhere', 'line']).default('anywhere'),
  agentBroadcasts: z.boolean().default(false),
  parallelTurns: z.int().min(1).max(1024).default(128).describe('turns of one chat at a time'),
  chatLLMProvider: z.string().min(1).max(64).nullable().default(null),
  chatLLMModel: z.string().min(1).max(256).nullable().default(null),
  budget: Budget.nullable().default(null).describe('the world’s running total; null is none'),
  chatBudget: Budget.nullable().default(null).describe('each chat’s running total; null is none'),
  toolPermission: z.enum(['read', 'ask', 'auto']).default('ask'),
  approvalTimeoutMs: z.int().min(1000).max(2_592_000_000).nullable().default(null),
  variables: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/), z.string().max(8192)).default({}),
});
export type WorldSettings = z.infer<typeof WorldSettings>;

export const World = WorldSettings.extend({ id: WorldId, createdAt: Timestamp, updatedAt: Timestamp });
export type World = z.infer<typeof World>;

export const ReasoningEffort = z.enum(['low', 'medium', 'high', 'inherit']);
export type ReasoningEffort = z.infer<typeof ReasoningEffort>;

export const AgentLimits = z.strictObject({
  maxIterations: z.int().positive().optional().describe('model calls of one turn, default 50'),
  timeoutMs: z.int().positive().optional().describe('of one whole turn, in milliseconds'),
  maxTokens: z.int().positive().optional().describe('of one answer'),
});

export const AgentTools = z.strictObject({
  allow: z.array(z.string().min(1).max(128)).max(500).optional().describe('absent: all tools; empty: none'),
  block: z.array(z.string().min(1).max(128)).max(500).optional().describe('beats allow'),
});
export type AgentTools = z.infer<typeof AgentTools>;

export const AgentSettings = z.strictObject({
  name: z.string().trim().min(1).max(100),
  displayName: z.string().trim().min(1).max(100).nullable().default(null),
  description: z.string().max(8192).default('').describe('one line that the other agents see'),
  type: z.literal('default').default('default'),
  status: z.enum(['active', 'inactive']).default('active'),
  autoReply: z.boolean().default(true),
  provider: z.string().min(1).max(64).nullable().default(null),
  model: z.string().min(1).max(256).nullable().default(null),
  temperature: z.number().min(0).max(1).nullable().default(null),
  reasoningEffort: ReasoningEffort.nullable().default(null),
  systemPrompt: z.string().max(262_144).default(''),
  tools: AgentTools.default({}),
  limits: AgentLimits.default({}),
});
export type AgentSettings = z.infer<typeof AgentSettings>;

export const WorldAgent = AgentSettings.extend({
  id: AgentId,
  source: z.enum(['world', 'demo', 'tool']).describe('where the agent comes from; `tool`: create_agent made it'),
  createdBy: AgentId.optional().describe('the agent that proposed it'),
  ceiling: z.array(z.string()).optional().describe('the most tools it can ever have: those of its maker'),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type WorldAgent = z.infer<typeof WorldAgent>;

export const Usage = z.strictObject({
  inputTokens: z.int().nonnegative(),
  outputTokens: z.int().nonnegative(),
  cachedTokens: z.int().nonnegative().describe('the part of inputTokens read from the provider’s cache'),
  reasoningTokens: z.int().nonnegative().describe('the part of outputTokens spent on thinking'),
  usd: z.number().nonnegative().describe('0 also where nobody knows the price'),
  calls: z.int().nonnegative(),
  estimated: z.literal(true).optional().describe('a part was not counted by the provider: UTF-8 bytes ÷ 3'),
});
export type Usage = z.infer<typeof Usage>;

export const WakeReason = z.enum([
  ...(['address', 'main_agent', 'broadcast', 'all', 'auto_reply', 'world_tag'] as const),
  ...(['transition', 'delegation', 'schedule', 'forward'] as const),
]);
export type WakeReason = z.infer<typeof WakeReason>;
export const IgnoreReason = z.enum([
  ...(['reference', 'code', 'quote', 'unknown', 'self', 'inactive', 'duplicate'] as const),
  ...(['empty_address', 'broadcast_refused', 'limit', 'stopped'] as const),
]);
export type IgnoreReason = z.infer<typeof IgnoreReason>;

/** The receipt of a message: whom it woke and why, what it ignored and why. */
export const Routing = z.strictObject({
  woke: z.array(z.strictObject({ agentId: AgentId, reason: WakeReason })),
  ignored: z.array(
    z.strictObject({
      text: z.string().describe('what was written, from the at-sign to the end of the name'),
      reason: IgnoreReason,
      suggestion: z.string().optional().describe('the id of the closest known agent'),
      agentId: AgentId.optional().describe('the agent that the text names, where it names one'),
    }),
  ),
});
export type Routing = z.infer<typeof Routing>;

export const Sender = z.strictObject({
  kind: z.enum(['human', 'agent', 'system', 'tool', 'world']),
  id: z.string(),
  name: z.string(),
});
export type Sender = z.infer<typeof Sender>;

export const ToolCall = z.strictObject({
  id: z.string(),
  name: z.string(),
  args: z.record(z.string(), z.unknown()),
  result: z.strictObject({ content: z.string(), isError: z.boolean() }).optional(),
});
export type ToolCall = z.infer<typeof ToolCall>;

export const LimitName = z.enum([
  ...(['turnLimit', 'hopLimit', 'pairLimit', 'chatTurnLimit', 'maxIterations'] as const),
  ...(['budget', 'chatBudget'] as const),
]);
export type LimitName = z.infer<typeof LimitName>;

/** What a system message is about, so that a client can offer the way on. */
export const Notice = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('limit'),
    limit: LimitName,
    used: z.number(),
    max: z.number(),
    unit: z.enum(['tokens', 'usd']).optional().describe('of a budget'),
    agentId: AgentId.optional(),
    action: z.literal('continue'),
  }),
  z.strictObject({ kind: z.literal('turn_failed'), turnId: TurnId, agentId: AgentId, error: z.string() }),
  z.strictObject({ kind: z.literal('info') }),
]);
export type Notice = z.infer<typeof Notice>;

export const Message = z.strictObject({
  id: MessageId,
  worldId: WorldId,
  chatId: ChatId,
  seq: z.int().positive().describe('counts per chat; the only order'),
  parentId: MessageId.nullable(),
  sender: Sender,
  content: z.string(),
  reasoning: z.string().optional(),
  toolCalls: z.array(ToolCall).optional(),
  routing: Routing,
  replyTo: MessageId.optional(),
  turnId: TurnId.optional(),
  usage: Usage.optional(),
  notice: Notice.optional(),
  status: z.enum(['complete', 'stopped', 'failed']),
  deleted: z.literal(true).optional().describe('what was said is gone'),
  createdAt: Timestamp,
});
export type Message = z.infer<typeof Message>;

export const Chat = z.strictObject({
  id: ChatId,
  worldId: WorldId,
  title: z.string(),
  head: MessageId.nullable(),
  parentChatId: ChatId.nullable(),
  paused: z.boolean(),
  lastSeq: z.int().nonnegative(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type Chat = z.infer<typeof Chat>;

/** One way that a chat went on. The one whose head is the chat's is the active one. */
export const Branch = z.strictObject({
  id: z.string(),
  forkMessageId: MessageId.nullable().describe('the last message that it shares with the branch it grew from'),
  headId: MessageId.nullable().describe('its last message; read it with `GET …/messages?head=`'),
  createdAt: Timestamp,
});
export type Branch = z.infer<typeof Branch>;

export const TurnState = z.enum(['queued', 'running', 'waiting', 'done', 'silent', 'failed', 'stopped']);
export type TurnState = z.infer<typeof TurnState>;

export const Turn = z.strictObject({
  id: TurnId,
  worldId: WorldId,
  chatId: ChatId,
  agentId: AgentId,
  state: TurnState,
  trigger: z.strictObject({ messageId: MessageId, seq: z.int().positive(), reason: WakeReason }),
  attempt: z.int().nonnegative(),
  error: z.strictObject({ code: z.string(), message: z.string() }).optional(),
  usage: Usage,
  queuedAt: Timestamp,
  startedAt: Timestamp.nullable(),
  endedAt: Timestamp.nullable(),
});
export type Turn = z.infer<typeof Turn>;

export const ApprovalKind = z.enum(['create_agent', 'tool', 'ask_user', 'unknown_outcome']);
export type ApprovalKind = z.infer<typeof ApprovalKind>;

export const Question = z.strictObject({
  id: z.string().min(1).max(64),
  header: z.string().max(100),
  question: z.string().max(8192),
  options: z
    .array(
      z.strictObject({
        id: z.string().min(1).max(64),
        label: z.string().max(1000),
        description: z.string().max(8192).optional(),
      }),
    )
    .max(50),
  freeText: z.boolean().optional().describe('an answer in one’s own words is welcome'),
});
export type Question = z.infer<typeof Question>;

export const Resolution = z.strictObject({
  optionId: z.string().nullable().describe('null where only text was given, or nothing'),
  answers: z
    .array(z.strictObject({ questionId: z.string(), optionIds: z.array(z.string()), text: z.string().optional() }))
    .optional(),
  text: z.string().optional(),
  by: z.string().describe('name of the person, or `system`'),
  at: Timestamp,
  reason: z.enum(['user_denied', 'timeout', 'cancelled']).optional().describe('why it is no'),
});
export type Resolution = z.infer<typeof Resolution>;

export const Approval = z.strictObject({
  id: ApprovalId,
  worldId: WorldId,
  chatId: ChatId,
  turnId: TurnId,
  agentId: AgentId,
  kind: ApprovalKind,
  title: z.string(),
  message: z.string().describe('the real effect, with invisible characters shown'),
  questions: z.array(Question).min(1),
  options: Question.shape.options.describe('of the first question'),
  defaultOptionId: z.string().nullable(),
  tool: z.string().optional(),
  args: z.record(z.string(), z.unknown()).optional(),
  argsHash: z.string().optional(),
  status: z.enum(['pending', 'answered', 'denied', 'expired', 'cancelled']),
  resolution: Resolution.optional(),
  createdAt: Timestamp,
  expiresAt: Timestamp.optional(),
});
export type Approval = z.infer<typeof Approval>;

export const Remember = z.enum(['once', 'chat', 'agent', 'world']);
export type Remember = z.infer<typeof Remember>;

/** A remembered yes, bound to a tool and its exact arguments. */
export const Grant = z.strictObject({
  id: GrantId,
  worldId: WorldId,
  scope: Remember.exclude(['once']),
  chatId: ChatId.nullable(),
  agentId: AgentId.nullable(),
  tool: z.string(),
  argsHash: z.string(),
  label: z.string().describe('what was allowed, for people'),
  by: z.string(),
  createdAt: Timestamp,
});
export type Grant = z.infer<typeof Grant>;

export const Rule = z.strictObject({
  effect: z.enum(['deny', 'ask', 'allow']),
  agent: z.string().min(1).max(128).optional(),
  tool: z.string().min(1).max(128),
});
export type Rule = z.infer<typeof Rule>;

export const Role = z.enum(['owner', 'member', 'viewer']);
export type Role = z.infer<typeof Role>;

export const Token = z.strictObject({
  id: TokenId,
  role: Role,
  label: z.string().describe('the person’s name in the room'),
  createdAt: Timestamp,
});
export type Token = z.infer<typeof Token>;

export const ProviderStatus = z.strictObject({
  id: z.string(),
  name: z.string(),
  configured: z.boolean(),
  keyFrom: z.enum(['environment', 'stored', 'none']),
  keyVariable: z.string().nullable().describe('the environment variable that would set the key'),
  baseUrl: z.string().nullable(),
  models: z.array(z.string()).describe('known to work; any other name is sent as written'),
  hint: z.string().describe('what to do to connect it'),
});
export type ProviderStatus = z.infer<typeof ProviderStatus>;

export const EMPTY_USAGE: Usage = Object.freeze({
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  reasoningTokens: 0,
  usd: 0,
  calls: 0,
});
export const EMPTY_ROUTING: Routing = Object.freeze({ woke: [], ignored: [] });
