import type { Actor } from '../ports.ts';
import { AppError } from '../protocol/errors.ts';

const RANK = { viewer: 0, member: 1, owner: 2 } as const;

/** Throws AppError `forbidden` where the caller's role is below the one needed. */
export function requireRole(actor: Actor, needed: Actor['role']): void {
  if (RANK[actor.role] < RANK[needed]) {
    throw new AppError('forbidden', `this needs the role ${needed}; your token has the role ${actor.role}`);
  }
}
