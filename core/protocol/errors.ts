import { z } from 'zod';

/** Every error code with the HTTP status that it answers with. A code never changes its meaning. */
export const ERROR_STATUS = {
  invalid: 400,
  invalid_json: 400,
  invalid_id: 400,
  reserved_id: 400,
  empty_message: 400,
  unauthorized: 401,
  forbidden: 403,
  host_refused: 403,
  origin_refused: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  agent_exists: 409,
  world_exists: 409,
  idempotency_mismatch: 409,
  nothing_to_continue: 409,
  too_large: 413,
  unsupported_media_type: 415,
  busy: 423,
  too_many: 429,
  internal: 500,
  storage_full: 507,
  // A turn's own errors: stored on the turn and shown in the room; as an answer of `test` they are 502.
  missing_api_key: 502,
  provider_unknown: 502,
  provider_auth: 502,
  provider_invalid_request: 502,
  provider_rate_limited: 502,
  provider_overloaded: 502,
  provider_unreachable: 502,
  provider_timeout: 502,
  provider_stream_broken: 502,
  provider_nonsense: 502,
  provider_refused: 502,
  script_invalid: 502,
  script_failed: 502,
  turn_timeout: 502,
  agent_removed: 409,
  price_unknown: 409,
  repeated_call: 502,
  interrupted: 500,
} as const;
export type ErrorCode = keyof typeof ERROR_STATUS;

/** The one error shape of REST, sockets and turns. */
export const ErrorBody = z.strictObject({
  error: z.string(),
  message: z.string(),
  details: z.record(z.string(), z.unknown()).optional(),
});
export type ErrorBody = z.infer<typeof ErrorBody>;

/** A broken rule: a stable code, what happened and what to do. Anything else that is thrown is a bug. */
export class AppError extends Error {
  override readonly name: string = 'AppError';
  readonly code: ErrorCode;
  readonly details: Record<string, unknown> | undefined;

  constructor(code: ErrorCode, message: string, details?: Record<string, unknown>, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return ERROR_STATUS[this.code];
  }

  toBody(): ErrorBody {
    return { error: this.code, message: this.message, ...(this.details ? { details: this.details } : {}) };
  }
}

/** A model call that went wrong. `retryable`: the turn may try again within its deadline. */
export class ModelError extends AppError {
  override readonly name = 'ModelError';
  readonly retryable: boolean;
  /** What the provider asked us to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: { retryable: boolean; retryAfterMs?: number | undefined; cause?: unknown },
  ) {
    super(code, message, undefined, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryable = options.retryable;
    this.retryAfterMs = options.retryAfterMs;
  }
}
