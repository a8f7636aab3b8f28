import { z } from 'zod';

/** Ids are opaque and URL-safe; the brand keeps one kind from standing in for another. */
export const WorldId = z.string().min(1).max(128).brand<'WorldId'>();
export const AgentId = z.string().min(1).max(128).brand<'AgentId'>();
export const ChatId = z.string().min(1).max(128).brand<'ChatId'>();
export const MessageId = z.string().min(1).max(128).brand<'MessageId'>();
export const TurnId = z.string().min(1).max(128).brand<'TurnId'>();
export const TokenId = z.string().min(1).max(128).brand<'TokenId'>();
export type WorldId = z.infer<typeof WorldId>;
export type AgentId = z.infer<typeof AgentId>;
export type ChatId = z.infer<typeof ChatId>;
export type MessageId = z.infer<typeof MessageId>;
export type TurnId = z.infer<typeof TurnId>;
export type TokenId = z.infer<typeof TokenId>;

const CAMEL_BOUNDARY = /(?<=[\p{Ll}\p{Nd}])(?=\p{Lu})/gu;
const NOT_IN_ID = /[^\p{L}\p{M}\p{N}]+/gu;

/**
 * The id rule of the mention grammar: NFC, a hyphen at each camel-case boundary, lower case, every
 * run of other characters to one hyphen, none at the ends. Letters of every script stay.
 * Returns '' where nothing is left; the caller must refuse that.
 */
export function idFromName(name: string): string {
  return name
    .normalize('NFC')
    .replace(CAMEL_BOUNDARY, '-')
    .toLowerCase()
    .normalize('NFC')
    .replace(NOT_IN_ID, '-')
    .replace(/^-|-$/g, '');
}

/** Two names that fold to one string are the same name: case, space, hyphen and underscore do not count. */
export function foldName(name: string): string {
  return name
    .normalize('NFC')
    .toLowerCase()
    .normalize('NFC')
    .replace(/[\s\-_]+/gu, '-');
}

/** Names that address people or the world, or that later name run targets and files. */
export const RESERVED_IDS: ReadonlySet<string> = new Set([
  ...['human', 'user', 'you', 'system', 'world', 'main', 'complete', 'failed', 'cancelled', 'self'],
  ...['all', 'everyone', 'here', 'con', 'prn', 'aux', 'nul'],
  ...Array.from({ length: 9 }, (_, i) => [`com${i + 1}`, `lpt${i + 1}`]).flat(),
]);
