import { z } from 'zod';

export { FORMAT_RUN, foldName, idFromName, RESERVED_IDS } from './names.ts';

/** Ids are opaque and URL-safe; the brand keeps one kind from standing in for another. */
export const WorldId = z.string().min(1).max(128).brand<'WorldId'>();
export const AgentId = z.string().min(1).max(128).brand<'AgentId'>();
export const ChatId = z.string().min(1).max(128).brand<'ChatId'>();
export const MessageId = z.string().min(1).max(128).brand<'MessageId'>();
export const TurnId = z.string().min(1).max(128).brand<'TurnId'>();
export const ApprovalId = z.string().min(1).max(256).brand<'ApprovalId'>();
export const GrantId = z.string().min(1).max(128).brand<'GrantId'>();
export const TokenId = z.string().min(1).max(128).brand<'TokenId'>();
export type WorldId = z.infer<typeof WorldId>;
export type AgentId = z.infer<typeof AgentId>;
export type ChatId = z.infer<typeof ChatId>;
export type MessageId = z.infer<typeof MessageId>;
export type TurnId = z.infer<typeof TurnId>;
export type ApprovalId = z.infer<typeof ApprovalId>;
export type GrantId = z.infer<typeof GrantId>;
export type TokenId = z.infer<typeof TokenId>;
