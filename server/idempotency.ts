import { createHash } from 'node:crypto';
import type { Actor } from '../core/parley.ts';
import type { Idempotency } from '../core/ports.ts';
import { AppError } from '../core/protocol/errors.ts';
import { canonicalJson } from '../core/safety/args-hash.ts';

/**
 * What makes two calls the same one: who, which call with which ids, the client's key, and the body.
 * Throws AppError `invalid` for a key that is empty, too long or has other than visible ASCII.
 */
export function idempotency(
  actor: Actor,
  call: { path: string; ids: readonly string[] },
  key: string | undefined,
  body: unknown,
): Idempotency | undefined {
  if (key === undefined) return undefined;
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) {
    throw new AppError('invalid', 'Idempotency-Key must have 1 to 255 visible ASCII characters');
  }
  const hash = createHash('sha256')
    .update(canonicalJson(body ?? null))
    .digest('hex');
  return { scope: JSON.stringify([actor.tokenId, 'POST', call.path, ...call.ids]), key, hash };
}

/** Paths of calls that are also frames: the same scope over REST and the socket, so that a resend over either is known. */
export const MESSAGES_PATH = '/api/v1/worlds/:world/chats/:chat/messages';
export const ANSWER_PATH = '/api/v1/worlds/:world/approvals/:approval/answer';
