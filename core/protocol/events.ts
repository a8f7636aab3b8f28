import { z } from 'zod';
import { Approval, Chat, LimitName, Message, Turn, World, WorldAgent } from './entities.ts';
import { AgentId, ChatId, MessageId, TurnId, WorldId } from './ids.ts';

const inWorld = { world: WorldId, at: z.iso.datetime() };
const inChat = { ...inWorld, chat: ChatId };
const stored = { seq: z.int().positive().describe('gap-free per world') };

const worldEvent = <T extends string, D extends z.ZodType>(type: T, data: D) =>
  z.strictObject({ type: z.literal(type), ...stored, ...inWorld, data });
const chatEvent = <T extends string, D extends z.ZodType>(type: T, data: D) =>
  z.strictObject({ type: z.literal(type), ...stored, ...inChat, data });

/** An event of the log: written in the transaction that changed the state. */
export const StoredEvent = z.discriminatedUnion('type', [
  worldEvent('world.updated', z.strictObject({ world: World })),
  worldEvent('world.deleted', z.strictObject({ id: WorldId })),
  worldEvent('agent.created', z.strictObject({ agent: WorldAgent })),
  worldEvent('agent.updated', z.strictObject({ agent: WorldAgent })),
  worldEvent('agent.removed', z.strictObject({ id: AgentId })),
  chatEvent('chat.created', z.strictObject({ chat: Chat })),
  chatEvent('chat.updated', z.strictObject({ chat: Chat })),
  chatEvent('chat.deleted', z.strictObject({ id: ChatId })),
  chatEvent('message.created', z.strictObject({ message: Message })),
  chatEvent('turn.queued', z.strictObject({ turn: Turn })),
  chatEvent('turn.started', z.strictObject({ turn: Turn })),
  chatEvent('turn.waiting', z.strictObject({ turn: Turn })),
  chatEvent('turn.done', z.strictObject({ turn: Turn })),
  chatEvent('turn.failed', z.strictObject({ turn: Turn })),
  chatEvent('turn.stopped', z.strictObject({ turn: Turn })),
  chatEvent('message.updated', z.strictObject({ message: Message })),
  chatEvent('message.deleted', z.strictObject({ id: MessageId })),
  chatEvent(
    'tool.started',
    z.strictObject({
      turnId: TurnId,
      agentId: AgentId,
      callId: z.string(),
      tool: z.string(),
      args: z.record(z.string(), z.unknown()),
    }),
  ),
  chatEvent(
    'tool.finished',
    z.strictObject({
      turnId: TurnId,
      agentId: AgentId,
      callId: z.string(),
      tool: z.string(),
      isError: z.boolean(),
      summary: z.string(),
    }),
  ),
  chatEvent('approval.requested', z.strictObject({ approval: Approval })),
  chatEvent('approval.answered', z.strictObject({ approval: Approval })),
  chatEvent('approval.expired', z.strictObject({ approval: Approval })),
  chatEvent('approval.cancelled', z.strictObject({ approval: Approval })),
  chatEvent(
    'limit.reached',
    z.strictObject({
      limit: LimitName,
      used: z.number(),
      max: z.number(),
      unit: z.enum(['tokens', 'usd']).optional().describe('of a budget'),
      agentId: AgentId.optional(),
      messageId: MessageId.describe('the system message that tells the room'),
    }),
  ),
]);
export type StoredEvent = z.infer<typeof StoredEvent>;

const delta = z.strictObject({
  turnId: TurnId,
  agentId: AgentId,
  runId: z.string().describe('fresh per execution; clients drop all but the newest'),
  index: z.int().nonnegative(),
  text: z.string(),
});
/** A live event: never stored, has no seq, may be dropped. Index 0 may carry all the text so far. */
export const LiveEvent = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('message.delta'), ...inChat, data: delta }),
  z.strictObject({ type: z.literal('reasoning.delta'), ...inChat, data: delta }),
  z.strictObject({
    type: z.literal('turn.retrying'),
    ...inChat,
    data: z.strictObject({ turnId: TurnId, agentId: AgentId, code: z.string(), message: z.string(), delayMs: z.int() }),
  }),
]);
export type LiveEvent = z.infer<typeof LiveEvent>;

export type WorldEvent = StoredEvent | LiveEvent;
export const isStored = (event: WorldEvent): event is StoredEvent => 'seq' in event;

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
/** An event before the store gives it its seq. */
export type EventDraft = DistributiveOmit<StoredEvent, 'seq' | 'at' | 'world'>;
