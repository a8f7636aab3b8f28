import type { Changed, Idempotency } from '../../ports.ts';
import { AppError } from '../../protocol/errors.ts';
import type { Session } from './session.ts';

/**
 * Runs a creating change in a transaction, once per idempotency key: a repeated call with the same body gets the
 * stored answer and writes nothing; with another body it is `idempotency_mismatch`.
 */
export function once<T>(session: Session, idem: Idempotency | undefined, work: () => Changed<T>): Changed<T> {
  return session.transaction(() => {
    const known = storedAnswer<T>(session, idem);
    if (known) return known;
    const changed = work();
    storeAnswer(session, idem, changed.value);
    return changed;
  });
}

/** The answer that an earlier call with this key got. For use inside a transaction. */
export function storedAnswer<T>(session: Session, idem: Idempotency | undefined): Changed<T> | null {
  if (!idem) return null;
  const row = session.one<{ hash: string; answer: string }>(
    'select hash, answer from idempotency_keys where scope = ? and key = ?',
    idem.scope,
    idem.key,
  );
  if (!row) return null;
  if (row.hash !== idem.hash) {
    throw new AppError(
      'idempotency_mismatch',
      `the idempotency key ${JSON.stringify(idem.key)} was used with another body; use a new key`,
    );
  }
  return { value: JSON.parse(row.answer) as T, events: [] };
}

/** Keeps the answer for a repeated call. For use inside a transaction. */
export function storeAnswer(session: Session, idem: Idempotency | undefined, answer: unknown): void {
  if (!idem) return;
  session.run(
    'insert into idempotency_keys (scope, key, hash, answer, created_at) values (?, ?, ?, ?, ?)',
    idem.scope,
    idem.key,
    idem.hash,
    JSON.stringify(answer),
    session.clock.now(),
  );
}
