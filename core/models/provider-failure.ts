/** What a failed exchange means: one ModelError for whatever a provider, its SDK or the network did. */
import { type ErrorCode, ModelError } from '../protocol/errors.ts';
import { type Exchange, OutboundFault } from '../safety/outbound.ts';
import { codeOfStatus } from './provider-errors.ts';
import type { ProviderTarget } from './target.ts';

const MAX_DETAIL_CHARS = 300;
const MAX_RETRY_AFTER_MS = 24 * 3_600_000;

/** Error types inside a stream that began well, of Anthropic and OpenAI and those who copy them. */
const STREAM_ERRORS: ReadonlyMap<string, ErrorCode> = new Map([
  ['overloaded_error', 'provider_overloaded'],
  ['api_error', 'provider_overloaded'],
  ['server_error', 'provider_overloaded'],
  ['internal_error', 'provider_overloaded'],
  ['timeout_error', 'provider_timeout'],
  ['rate_limit_error', 'provider_rate_limited'],
  ['rate_limit_exceeded', 'provider_rate_limited'],
  ['insufficient_quota', 'provider_rate_limited'],
  ['authentication_error', 'provider_auth'],
  ['permission_error', 'provider_auth'],
  ['invalid_api_key', 'provider_auth'],
  ['invalid_request_error', 'provider_invalid_request'],
  ['not_found_error', 'provider_invalid_request'],
]);

const NETWORK: ReadonlyMap<string, { code: ErrorCode; retryable: boolean; what: string }> = new Map([
  ['ECONNREFUSED', { code: 'provider_unreachable', retryable: false, what: 'refused the connection' }],
  ['ENOTFOUND', { code: 'provider_unreachable', retryable: false, what: 'has a host name that is not known' }],
  ['EAI_AGAIN', { code: 'provider_unreachable', retryable: true, what: 'could not be looked up just now' }],
  ['EHOSTUNREACH', { code: 'provider_unreachable', retryable: false, what: 'cannot be reached' }],
  ['ENETUNREACH', { code: 'provider_unreachable', retryable: false, what: 'cannot be reached' }],
  ['ETIMEDOUT', { code: 'provider_timeout', retryable: true, what: 'did not accept the connection in time' }],
  [
    'UND_ERR_CONNECT_TIMEOUT',
    { code: 'provider_timeout', retryable: true, what: 'did not accept the connection in time' },
  ],
] as const);

/** Maps whatever was thrown. `error` that is already a ModelError stays as it is. */
export function failureOf(error: unknown, exchange: Readonly<Exchange>, target: ProviderTarget): ModelError {
  if (error instanceof ModelError) return error;
  const make = (code: ErrorCode, retryable: boolean, text: string, retryAfterMs?: number): ModelError =>
    new ModelError(code, target.secrets.redact(text), { retryable, retryAfterMs });
  const { name } = target;
  const fault = exchange.fault ?? (error instanceof OutboundFault ? error : null);
  if (fault) {
    if (fault.kind === 'timeout') return make('provider_timeout', true, `${name} hangs: ${fault.message}`);
    if (fault.kind === 'size') return make('provider_nonsense', false, `${name} was cut off: ${fault.message}`);
    return make(
      'provider_invalid_request',
      false,
      `${name} at ${target.baseUrl}: ${fault.message}; correct the address`,
    );
  }
  if (exchange.status === null) return unreached(error, target, make);
  if (exchange.status >= 300) return ofStatus(error, exchange.status, exchange.headers, target, make);
  const type = typesIn(error).find((candidate) => STREAM_ERRORS.has(candidate));
  const code = type === undefined ? undefined : STREAM_ERRORS.get(type);
  if (code !== undefined || isProviderError(error)) {
    const known = code ?? 'provider_overloaded';
    const retryable = known.endsWith('overloaded') || known.endsWith('timeout') || known.endsWith('limited');
    const text = `${name} reported an error in its answer${detailOf(error)}`;
    return make(known, retryable && type !== 'insufficient_quota', text);
  }
  const isShape = error instanceof TypeError && networkCode(error) === null && error.message !== 'terminated';
  if (isShape) return make('provider_nonsense', false, `${name} sent an event of a shape that does not exist`);
  if (error instanceof SyntaxError) return make('provider_nonsense', false, `${name} sent something that is not JSON`);
  return make(
    'provider_stream_broken',
    true,
    `The answer of ${name} broke off (${networkCode(error) ?? 'connection lost'})`,
  );
}

/** The error for a stream that ended without saying that it is finished. */
export function unfinished(exchange: Readonly<Exchange>, target: ProviderTarget): ModelError {
  const type = exchange.headers?.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (type !== '' && type !== 'text/event-stream' && type !== 'application/x-ndjson') {
    const text = `${target.name} at ${target.baseUrl} answered ${type} instead of an event stream; check the address`;
    return new ModelError('provider_nonsense', target.secrets.redact(text), { retryable: false });
  }
  return new ModelError('provider_stream_broken', `The answer of ${target.name} broke off before its end`, {
    retryable: true,
  });
}

type Make = (code: ErrorCode, retryable: boolean, text: string, retryAfterMs?: number) => ModelError;

function unreached(error: unknown, target: ProviderTarget, make: Make): ModelError {
  const code = networkCode(error);
  const known = code === null ? undefined : NETWORK.get(code);
  const where = `${target.name} at ${target.baseUrl}`;
  if (known)
    return make(known.code, known.retryable, `${where} ${known.what}; is it running, and is the address right?`);
  if (code !== null && /CERT|TLS|SSL|SIGNED/.test(code)) {
    return make('provider_unreachable', false, `${where} has a certificate that cannot be trusted (${code})`);
  }
  return make(
    'provider_stream_broken',
    true,
    `${where} closed the connection without an answer (${code ?? 'no code'})`,
  );
}

function ofStatus(
  error: unknown,
  status: number,
  headers: Headers | null,
  target: ProviderTarget,
  make: Make,
): ModelError {
  const { code, retryable } = codeOfStatus(status);
  const detail = detailOf(error);
  const { name } = target;
  switch (code) {
    case 'provider_auth': {
      const variable = target.keyVariable === null ? '' : `${target.keyVariable} or `;
      return make(
        code,
        false,
        `${name} refused the key (${status})${detail}. Check ${variable}the key in the page's model settings`,
      );
    }
    case 'provider_rate_limited': {
      // No amount of waiting fills an empty account.
      const spent = typesIn(error).includes('insufficient_quota');
      const wait = headers === null ? undefined : retryAfterMs(headers, target.clock.now());
      return make(
        code,
        !spent,
        `${name} ${spent ? 'says the quota is used up' : 'limits the rate'} (${status})${detail}`,
        wait,
      );
    }
    case 'provider_invalid_request': {
      const pull =
        target.provider === 'ollama' && status === 404 ? '. Is the model there? "ollama pull NAME" fetches it' : '';
      return make(code, false, `${name} did not accept the request (${status})${detail}${pull}`);
    }
    default: {
      const wait = headers === null ? undefined : retryAfterMs(headers, target.clock.now());
      return make(code, retryable, `${name} answered with status ${status}${detail}`, wait);
    }
  }
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110, 10.2.3), in milliseconds; bounded to a day. */
export function retryAfterMs(headers: Headers, now: number): number | undefined {
  const exact = Number.parseFloat(headers.get('retry-after-ms') ?? '');
  const text = headers.get('retry-after')?.trim() ?? '';
  const wait = Number.isFinite(exact)
    ? exact
    : /^\d+(\.\d+)?$/.test(text)
      ? Number(text) * 1000
      : Date.parse(text) - now;
  return Number.isFinite(wait) ? Math.min(Math.max(Math.round(wait), 0), MAX_RETRY_AFTER_MS) : undefined;
}

function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}

/** The provider's own words, where they are words: not a page of HTML, not a dump. */
function detailOf(error: unknown): string {
  const inner = field(error, 'error');
  const own = [field(field(inner, 'error'), 'message'), field(inner, 'message'), field(error, 'message'), inner];
  const found = own.find((candidate): candidate is string => typeof candidate === 'string' && candidate.trim() !== '');
  const text = (found ?? '')
    .replace(/^\d{3} /, '')
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  if (text === '' || text.includes('<') || text.startsWith('{') || text.includes('no body')) return '';
  return `: ${text.length > MAX_DETAIL_CHARS ? `${text.slice(0, MAX_DETAIL_CHARS)}…` : text}`;
}

/** The message of a status 400, for learning what the provider does not know. */
export function complaintOf(error: unknown, exchange: Readonly<Exchange>): string {
  return exchange.status === 400 || exchange.status === 422 ? detailOf(error) : '';
}

function typesIn(error: unknown): string[] {
  const inner = field(error, 'error');
  const places = [error, inner, field(inner, 'error')];
  return places
    .flatMap((place) => [field(place, 'type'), field(place, 'code')])
    .filter((value): value is string => typeof value === 'string');
}

function isProviderError(error: unknown): boolean {
  return error instanceof Error && field(error, 'error') !== undefined;
}

function networkCode(error: unknown): string | null {
  let at: unknown = error;
  for (let depth = 0; depth < 6 && at !== undefined; depth += 1) {
    const code = field(at, 'code');
    if (typeof code === 'string') return code;
    const parts = field(at, 'errors');
    at = Array.isArray(parts) ? parts[0] : field(at, 'cause');
  }
  return null;
}
