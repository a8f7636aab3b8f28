import { AppError } from '../core/protocol/errors.ts';
import { CommandError, ExitCode } from './io.ts';
import { safeText } from './safe-text.ts';

/** Codes of the operating system that a person can do something about. */
const SYSTEM: Record<string, string> = {
  EACCES: 'no permission',
  EPERM: 'not permitted',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  ENOTDIR: 'not a directory',
  EISDIR: 'a directory, not a file',
  ENOENT: 'does not exist',
  EMFILE: 'too many open files',
  ELOOP: 'symbolic links in a circle',
};

interface SystemError extends Error {
  code: string;
  path?: string;
  address?: string;
  port?: number;
}

function isSystemError(error: unknown): error is SystemError {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && 'syscall' in error;
}

/** One line that says what happened and where; never a stack. */
export function explain(error: unknown): string {
  return safeText(textOf(error)).replaceAll(/\s*\n\s*/g, ' ');
}

function textOf(error: unknown): string {
  if (error instanceof AppError) return error.message;
  if (error instanceof CommandError) return error.message;
  if (isSystemError(error)) {
    if (error.code === 'EADDRINUSE') {
      return `port ${error.port ?? '?'} on ${error.address ?? 'this machine'} is already in use: stop the other program or choose another with --port`;
    }
    if (error.code === 'EADDRNOTAVAIL')
      return `${error.address ?? 'the host'} is not an address of this machine: check --host`;
    const reason = SYSTEM[error.code];
    if (reason !== undefined) return `${error.path ?? 'a file'}: ${reason}`;
  }
  return `unexpected error: ${error instanceof Error ? error.message : String(error)}; --verbose shows where`;
}

export function exitCodeOf(error: unknown): ExitCode {
  return error instanceof CommandError ? error.exitCode : ExitCode.failed;
}
