import { z } from 'zod';
import {
  AgentSettings,
  Approval,
  Branch,
  Chat,
  Grant,
  Message,
  Remember,
  Role,
  Routing,
  Rule,
  Token,
  Turn,
  Usage,
  World,
  WorldAgent,
  WorldSettings,
} from './entities.ts';
import { AgentId, TurnId } from './ids.ts';

export const MAX_MESSAGE_BYTES = 256 * 1024;
export const MAX_PAGE = 500;

/** Makes every field optional without its default, so that a PATCH changes only what it names. */
function patchOf<S extends z.ZodRawShape>(schema: z.ZodObject<S>) {
  const shape: Record<string, z.ZodType> = {};
  for (const [key, field] of Object.entries(schema.shape)) {
    shape[key] = (field instanceof z.ZodDefault ? (field.unwrap() as z.ZodType) : (field as z.ZodType)).optional();
  }
  return z.strictObject(shape);
}

export const CreateWorld = WorldSettings;
export const PatchWorld = patchOf(WorldSettings) as z.ZodType<Partial<WorldSettings>>;
export const CreateAgent = AgentSettings.extend({ id: z.string().min(1).max(128).optional() });
export type CreateAgent = z.infer<typeof CreateAgent>;
export const PatchAgent = patchOf(AgentSettings) as z.ZodType<Partial<AgentSettings>>;
export const CreateChat = z.strictObject({ title: z.string().trim().max(200).optional() });
export const PatchChat = z.strictObject({
  title: z.string().trim().min(1).max(200).optional(),
  head: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe('a message: the branch that ends with it, or else the one that it was said on, becomes the active one'),
});
export const PostMessage = z.strictObject({ content: z.string() });
export const EditMessage = z.strictObject({ content: z.string() });
export const ForkChat = z.strictObject({ messageId: z.string().min(1).max(128) });
export const ForwardMessage = z.strictObject({ agentId: z.string().min(1).max(128) });
export const AnswerApproval = z.strictObject({
  optionId: z.string().max(64).optional(),
  chatId: z.string().max(128).optional().describe('where given, it must be the approval’s chat'),
  text: z.string().max(65_536).optional(),
  remember: Remember.optional(),
  answers: z
    .array(
      z.strictObject({
        questionId: z.string().max(64),
        optionIds: z.array(z.string().max(64)).max(50),
        text: z.string().max(65_536).optional(),
      }),
    )
    .max(50)
    .optional(),
  skipped: z.literal(true).optional(),
});
export type AnswerApproval = z.infer<typeof AnswerApproval>;
export const ApprovalList = z.strictObject({ approvals: z.array(Approval) });
export const AnsweredApproval = z.strictObject({
  accepted: z.boolean(),
  reason: z.string().optional(),
  approval: Approval,
});
export type AnsweredApproval = z.infer<typeof AnsweredApproval>;
export const GrantList = z.strictObject({ grants: z.array(Grant) });
export const RuleList = z.strictObject({ rules: z.array(Rule).max(500) });
export const CreateToken = z.strictObject({ role: Role, label: z.string().trim().min(1).max(100) });
export const CreateSession = z.strictObject({ token: z.string().min(1).max(512) });
export const PutProvider = z.strictObject({
  apiKey: z.string().trim().max(1024).nullable().optional().describe('null forgets the stored key'),
  baseUrl: z
    .url({ protocol: /^https?$/ })
    .max(2048)
    .nullable()
    .optional()
    .describe('null forgets the stored address'),
});
export const TestProvider = z.strictObject({ model: z.string().min(1).max(256).optional() });

export const BranchList = z.strictObject({ branches: z.array(Branch) });

export const WorldDetail = World.extend({ agents: z.array(WorldAgent), chats: z.array(Chat) });
export type WorldDetail = z.infer<typeof WorldDetail>;
export const MessagePage = z.strictObject({
  messages: z.array(Message),
  next: z.int().nullable().describe('pass as `before` for the page before this one; null at the start'),
});
export type MessagePage = z.infer<typeof MessagePage>;
export const Posted = z.strictObject({
  message: Message,
  routing: Routing,
  turns: z.array(z.strictObject({ id: TurnId, agentId: AgentId })),
});
export type Posted = z.infer<typeof Posted>;
export const PostedAndIdle = Posted.extend({
  idle: z.boolean(),
  messages: z.array(Message),
  approvals: z.array(Approval),
});
export type PostedAndIdle = z.infer<typeof PostedAndIdle>;
export const TurnList = z.strictObject({ turns: z.array(Turn) });
export const WorldUsage = z.strictObject({
  total: Usage,
  agents: z.record(z.string(), Usage),
  chats: z.record(z.string(), Usage),
});
export type WorldUsage = z.infer<typeof WorldUsage>;
export const CreatedToken = Token.extend({ token: z.string() });
export type CreatedToken = z.infer<typeof CreatedToken>;
export const ProviderTest = z.strictObject({
  ok: z.boolean(),
  model: z.string(),
  latencyMs: z.number(),
  error: z.string().optional(),
  message: z.string(),
});
export type ProviderTest = z.infer<typeof ProviderTest>;
