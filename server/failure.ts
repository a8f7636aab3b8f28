import { randomBytes } from 'node:crypto';
import type { Log } from '../core/ports.ts';
import { AppError } from '../core/protocol/errors.ts';

/** What may be shown of anything thrown: an AppError as it is, a bug as `internal` with the id under which it is logged. */
export function toAppError(error: unknown, log: Log, where: Record<string, unknown>): AppError {
  if (error instanceof AppError) {
    if (error.status >= 500) log.warn({ ...where, code: error.code }, error.message);
    return error;
  }
  const id = randomBytes(6).toString('hex');
  log.error({ ...where, id, err: error }, 'a request failed');
  return new AppError('internal', `Something broke in the server; its log has the details under ${id}`, { id });
}
