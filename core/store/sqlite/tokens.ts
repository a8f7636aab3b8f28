import type { Tokens } from '../../ports.ts';
import type { Role, Token } from '../../protocol/entities.ts';
import type { TokenId } from '../../protocol/ids.ts';
import { iso } from './rows.ts';
import type { Session } from './session.ts';

interface TokenRow {
  id: string;
  role: string;
  label: string;
  created_at: number;
}

const toToken = (row: TokenRow): Token => ({
  id: row.id as TokenId,
  role: row.role as Role,
  label: row.label,
  createdAt: iso(row.created_at),
});

/** Access tokens, as hashes. */
export function sqliteTokens(session: Session): Tokens {
  const { one, all, run, clock } = session;
  return {
    async listTokens() {
      return all<TokenRow>('select * from tokens order by created_at, id').map(toToken);
    },
    async addToken(token) {
      const row = one<TokenRow>(
        `insert into tokens (id, hash, role, label, created_at) values (?, ?, ?, ?, ?)
         on conflict (hash) do update set hash = excluded.hash returning *`,
        token.id,
        token.hash,
        token.role,
        token.label,
        clock.now(),
      );
      if (!row) throw new Error('a token was neither added nor found');
      return toToken(row);
    },
    async findToken(hash) {
      const row = one<TokenRow>('select * from tokens where hash = ?', hash);
      return row ? toToken(row) : null;
    },
    async removeToken(id) {
      return run('delete from tokens where id = ?', id) > 0;
    },
  };
}
