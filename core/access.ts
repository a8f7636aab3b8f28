import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { Actor, Idempotency, Ids, Tokens } from './ports.ts';
import type { Role, Token } from './protocol/entities.ts';
import { AppError } from './protocol/errors.ts';
import type { TokenId } from './protocol/ids.ts';
import type { CreatedToken } from './protocol/requests.ts';
import { requireRole } from './world/access.ts';

export const OWNER: Actor = { tokenId: 'owner', role: 'owner', name: 'Owner' };

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

/** The owner's token from its file; made at first start, readable by its owner alone. */
export function ownerToken(file: string): string {
  if (existsSync(file)) {
    const token = readFileSync(file, 'utf8').trim();
    if (token.length < 16)
      throw new AppError('invalid', `${file} holds no token of at least 16 characters; delete it to get a new one`);
    chmodSync(file, 0o600);
    return token;
  }
  const token = randomBytes(32).toString('base64url');
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  return token;
}

/** Tokens: who is who, and who may hand out more. Only hashes are stored. */
export function openAccess(store: Tokens, owner: string, ids: Ids) {
  const ownerHash = sha256(owner);
  return {
    async authenticate(token: string): Promise<Actor | null> {
      const hash = sha256(token);
      if (timingSafeEqual(hash, ownerHash)) return OWNER;
      const found = await store.findToken(hash.toString('hex'));
      return found ? { tokenId: found.id, role: found.role, name: found.label } : null;
    },
    async listTokens(actor: Actor): Promise<Token[]> {
      requireRole(actor, 'owner');
      return store.listTokens();
    },
    async createToken(actor: Actor, input: { role: Role; label: string }, idem?: Idempotency): Promise<CreatedToken> {
      requireRole(actor, 'owner');
      // With a key the token is derived, so that a repeated call answers the same one although only its hash is stored.
      const token = idem
        ? createHmac('sha256', owner)
            .update(JSON.stringify([idem.scope, idem.key, idem.hash]))
            .digest('base64url')
        : randomBytes(32).toString('base64url');
      const added = await store.addToken({
        id: ids.make('k') as TokenId,
        ...input,
        hash: sha256(token).toString('hex'),
      });
      return { ...added, token };
    },
    async removeToken(actor: Actor, id: string): Promise<void> {
      requireRole(actor, 'owner');
      if (!(await store.removeToken(id))) throw new AppError('not_found', `there is no token ${JSON.stringify(id)}`);
    },
  };
}
