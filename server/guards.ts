import type { MiddlewareHandler } from 'hono';
import { OWNER } from '../core/access.ts';
import type { Actor, Parley } from '../core/parley.ts';
import { AppError } from '../core/protocol/errors.ts';
import {
  type AccessPolicy,
  checkContentType,
  checkHost,
  checkOrigin,
  type HostKind,
  isPublic,
  tokenOf,
} from './access.ts';
import { hasBody, tooLarge } from './body.ts';
import { BOUNDS } from './bounds.ts';
import type { ServerContext, ServerEnv } from './endpoint.ts';

export interface GuardOptions {
  auth: boolean;
  allowedHosts: readonly string[];
  /** The port that the server listens on, once it does. */
  port: () => number;
  /** Named to a person who has no token yet. */
  tokenFile: string;
}

const policyOf = (options: GuardOptions): AccessPolicy => ({
  port: options.port(),
  allowedHosts: options.allowedHosts,
});

/** Set only by a caller in the same process; nothing that arrives over a socket can set it. */
export const IN_PROCESS = Symbol('in process');
const isInProcess = (c: ServerContext): boolean =>
  (c.env as Record<symbol, unknown> | undefined)?.[IN_PROCESS] === true;

/** A request made in process, as tests do, has its host in the address alone. */
function hostOf(c: ServerContext): string {
  const arrived = (c.env as { incoming?: unknown } | undefined)?.incoming !== undefined;
  return c.req.header('host') ?? (arrived ? '' : new URL(c.req.url).host);
}

/** Host, Origin, content type and size, before any routing. */
export function guardRequest(options: GuardOptions): MiddlewareHandler<ServerEnv> {
  return async (c, next) => {
    if (isInProcess(c)) {
      c.set('isLocal', true);
    } else {
      const host = hostOf(c);
      const kind = checkHost(host, policyOf(options));
      checkOrigin(c.req.header('origin'), host, kind);
      c.set('isLocal', kind === 'loopback');
    }
    if (hasBody(c)) {
      checkContentType(c.req.header('content-type'), c.req.header('content-encoding'));
      if (Number(c.req.header('content-length') ?? 0) > BOUNDS.bodyBytes) throw tooLarge(BOUNDS.bodyBytes);
    }
    await next();
  };
}

/** The caller behind a token; AppError `unauthorized` that tells a caller on this machine where the token is. */
export async function authenticate(
  parley: Parley,
  options: GuardOptions,
  token: string | null,
  isLocal: boolean,
): Promise<Actor> {
  if (!options.auth) return OWNER;
  const actor = token === null ? null : await parley.authenticate(token);
  if (actor !== null) return actor;
  const what = token === null ? 'This needs an access token' : 'Nobody has this access token';
  if (!isLocal) throw new AppError('unauthorized', what);
  throw new AppError('unauthorized', `${what}; the owner’s is in ${options.tokenFile}`, {
    tokenFile: options.tokenFile,
  });
}

/** Finds out who calls; only what is public goes on without a token. */
export function guardAccess(parley: Parley, options: GuardOptions): MiddlewareHandler<ServerEnv> {
  return async (c, next) => {
    if (!isPublic(c.req.method, c.req.path)) {
      const token = tokenOf({ authorization: c.req.header('authorization'), cookie: c.req.header('cookie') });
      c.set('token', token);
      c.set('actor', await authenticate(parley, options, token, c.get('isLocal')));
    }
    await next();
  };
}

/** The same checks for a socket upgrade, on the raw headers. Throws AppError. */
export function guardUpgrade(
  options: GuardOptions,
  headers: { host?: string | undefined; origin?: string | undefined },
): HostKind {
  const kind = checkHost(headers.host, policyOf(options));
  checkOrigin(headers.origin, headers.host ?? '', kind);
  return kind;
}
