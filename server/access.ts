/** Pure checks of what a request claims about itself, shared by HTTP and the socket upgrade. */
import { AppError } from '../core/protocol/errors.ts';
import { SUBPROTOCOL } from '../core/protocol/frames.ts';

export interface AccessPolicy {
  /** The port that the server listens on. */
  port: number;
  /** Names beyond loopback, with or without a port; without one any port will do. */
  allowedHosts: readonly string[];
}

const LOOPBACK_NAMES = new Set(['127.0.0.1', 'localhost', '[::1]']);
/** A name or a bracketed IPv6 address, then a port. Anything else a Host header can hold is refused. */
const HOST = /^([a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_.])?|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/;
const DEFAULT_PORT = { http: 80, https: 443 } as const;

export type HostKind = 'loopback' | 'allowed';

function splitHost(host: string): { name: string; port: number | null } | null {
  const match = HOST.exec(host.toLowerCase());
  if (match?.[1] === undefined) return null;
  return { name: match[1], port: match[2] === undefined ? null : Number(match[2]) };
}

/** How the server is addressed; throws AppError `host_refused` for a name that is not its own (DNS rebinding). */
export function checkHost(host: string | undefined, policy: AccessPolicy): HostKind {
  const parts = host === undefined ? null : splitHost(host);
  if (parts !== null) {
    if (LOOPBACK_NAMES.has(parts.name) && (parts.port ?? DEFAULT_PORT.http) === policy.port) return 'loopback';
    for (const allowed of policy.allowedHosts) {
      const own = splitHost(allowed);
      if (own !== null && own.name === parts.name && (own.port === null || own.port === parts.port)) return 'allowed';
    }
  }
  throw new AppError(
    'host_refused',
    `This server does not answer to the host ${JSON.stringify(host ?? '')}: use localhost or 127.0.0.1 with port ${policy.port}, or add the name to PARLEY_ALLOWED_HOSTS`,
  );
}

/**
 * An Origin, where sent, must be the page that this server serves; throws AppError `origin_refused`. Only an
 * allowed host may be reached over https, through a proxy.
 */
export function checkOrigin(origin: string | undefined, host: string, kind: HostKind): void {
  if (origin === undefined) return;
  const match = /^(https?):\/\/([^/?#@]+)$/.exec(origin.toLowerCase());
  const scheme = match?.[1] === 'https' ? 'https' : 'http';
  const claimed = match?.[2] === undefined ? null : splitHost(match[2]);
  const own = splitHost(host);
  const port = DEFAULT_PORT[scheme];
  const same =
    claimed !== null &&
    own !== null &&
    claimed.name === own.name &&
    (claimed.port ?? port) === (own.port ?? port) &&
    (scheme === 'http' || kind === 'allowed');
  if (!same) {
    throw new AppError('origin_refused', `Pages of ${JSON.stringify(origin)} may not use this server`);
  }
}

/** A body must be JSON in UTF-8, not compressed; throws AppError `unsupported_media_type`. */
export function checkContentType(contentType: string | undefined, encoding: string | undefined): void {
  const [type = '', ...parameters] = (contentType ?? '').toLowerCase().split(';');
  const charset = parameters.map((p) => p.trim()).find((p) => p.startsWith('charset='));
  const isJson = type.trim() === 'application/json' && (charset === undefined || /^charset="?utf-?8"?$/.test(charset));
  if (isJson && (encoding === undefined || encoding.toLowerCase() === 'identity')) return;
  throw new AppError('unsupported_media_type', 'A body must be sent as application/json in UTF-8, not compressed');
}

export const SESSION_COOKIE = 'parley_session';

/** The token that a request carries: the Authorization header first, then the session cookie. */
export function tokenOf(headers: { authorization?: string | undefined; cookie?: string | undefined }): string | null {
  if (headers.authorization !== undefined) {
    const match = /^bearer +([^\s]+) *$/i.exec(headers.authorization);
    return match?.[1] ?? null;
  }
  for (const pair of (headers.cookie ?? '').split(';')) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at).trim() === SESSION_COOKIE) return pair.slice(at + 1).trim() || null;
  }
  return null;
}

/** The token of a socket's subprotocols; null where there is none. Throws `invalid` without `parley.v1`. */
export function tokenOfProtocols(header: string | undefined): string | null {
  const offered = (header ?? '').split(',').map((name) => name.trim());
  if (!offered.includes(SUBPROTOCOL)) {
    throw new AppError('invalid', `A socket must offer the subprotocol ${SUBPROTOCOL}`);
  }
  return offered.find((name) => name.startsWith('bearer.'))?.slice('bearer.'.length) || null;
}

const PROTECTED = new Set(['api', 'ws', 'mcp', 'a2a', 'ag-ui', 'v1']);

/** What works without a token: the health check, opening a session, and reading the page's own files. */
export function isPublic(method: string, path: string): boolean {
  if (method === 'POST') return path === '/api/v1/session';
  if (method !== 'GET' && method !== 'HEAD') return false;
  return !PROTECTED.has(path.split('/')[1] ?? '');
}
