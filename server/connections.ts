import type { Log } from '../core/ports.ts';
import { AppError } from '../core/protocol/errors.ts';

/** Something that stays open after its request: a socket or an event stream. */
export interface Connection {
  readonly tokenId: string;
  /** To ask again whether it is still good; null where no token is needed. */
  readonly token: string | null;
  /** Called at each heartbeat. */
  beat(): void;
  close(reason: 'revoked' | 'shutdown'): void;
}

export interface Connections {
  /** Throws AppError `too_many` over the bound. Returns the function that takes it out again. */
  add(connection: Connection): () => void;
  /** Closes what a revoked token has opened. */
  revoke(tokenId: string): void;
  /** A beat for all; closes what belongs to tokens that are no longer good. */
  beat(): Promise<void>;
  size(): number;
  closeAll(): void;
}

export function openConnections(max: number, isGood: (token: string) => Promise<boolean>, log: Log): Connections {
  const open = new Set<Connection>();
  const close = (reason: 'revoked' | 'shutdown', which: (connection: Connection) => boolean): void => {
    for (const connection of [...open]) if (which(connection)) connection.close(reason);
  };
  return {
    add(connection) {
      if (open.size >= max) {
        throw new AppError('too_many', `The server has ${max} open connections and takes no more; try again later`);
      }
      open.add(connection);
      return () => {
        open.delete(connection);
      };
    },
    revoke: (tokenId) => close('revoked', (connection) => connection.tokenId === tokenId),
    async beat() {
      for (const connection of [...open]) connection.beat();
      const tokens = new Set([...open].map(({ token }) => token));
      for (const token of tokens) {
        if (token === null) continue;
        try {
          if (!(await isGood(token))) close('revoked', (connection) => connection.token === token);
        } catch (error) {
          log.warn({ err: error }, 'could not check a token of open connections');
        }
      }
    },
    size: () => open.size,
    closeAll: () => close('shutdown', () => true),
  };
}
