/** Tokens, and the whole store. */
import type { Role, Token } from '../protocol/entities.ts';
import type { TokenId } from '../protocol/ids.ts';
import type { Branches } from './branches.ts';
import type { Mutations } from './changing.ts';
import type { Directory, EventLog } from './reading.ts';
import type { Approvals } from './tools.ts';
import type { Commit, Journal, Lease, TurnQueue } from './turns.ts';

export interface Tokens {
  listTokens(): Promise<Token[]>;
  /** `hash` is SHA-256 in hex; the token itself is never stored. */
  addToken(token: { id: TokenId; role: Role; label: string; hash: string }): Promise<Token>;
  findToken(hash: string): Promise<Token | null>;
  removeToken(id: string): Promise<boolean>;
}

export interface Store
  extends Directory,
    EventLog,
    Mutations,
    Branches,
    TurnQueue,
    Journal,
    Commit,
    Lease,
    Approvals,
    Tokens {
  close(): Promise<void>;
}
