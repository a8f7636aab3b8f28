import { type ErrorCode, ModelError } from '../protocol/errors.ts';

/** What an HTTP status of a model provider means. 529 is Anthropic's "overloaded". */
export function codeOfStatus(status: number): { code: ErrorCode; retryable: boolean } {
  if (status === 401 || status === 403) return { code: 'provider_auth', retryable: false };
  if (status === 408 || status === 504) return { code: 'provider_timeout', retryable: true };
  if (status === 429) return { code: 'provider_rate_limited', retryable: true };
  if (status === 409) return { code: 'provider_overloaded', retryable: true };
  if (status >= 500) return { code: 'provider_overloaded', retryable: true };
  if (status >= 400) return { code: 'provider_invalid_request', retryable: false };
  return { code: 'provider_nonsense', retryable: false };
}

const RETRYABLE: ReadonlySet<ErrorCode> = new Set([
  'provider_rate_limited',
  'provider_overloaded',
  'provider_timeout',
  'provider_stream_broken',
]);

/** Whether an error of this code is worth another attempt where nothing else is known about it. */
export function isRetryable(code: ErrorCode): boolean {
  return RETRYABLE.has(code);
}

export function scriptError(code: 'script_invalid' | 'script_failed', message: string): ModelError {
  return new ModelError(code, message, { retryable: false });
}
