import type { MiddlewareHandler } from 'hono';
import type { Log } from '../core/ports.ts';
import type { ServerEnv } from './endpoint.ts';

/** Scripts, styles and connections of our own only; nothing inline, nothing framed. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The reader of the API document sets style attributes; its scripts are files all the same. */
export const DOCS_POLICY = PAGE_POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'");

const HEADERS: readonly (readonly [string, string])[] = [
  ['Content-Security-Policy', PAGE_POLICY],
  ['X-Content-Type-Options', 'nosniff'],
  ['Referrer-Policy', 'no-referrer'],
  ['X-Frame-Options', 'DENY'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Cache-Control', 'no-store'],
];

/**
 * The one place of headers, set before the handler runs: to touch a finished response costs a copy of it. Also the one
 * line of log per request, without query, headers or body, so that no secret can be in it.
 */
export function secureHeaders(log: Log): MiddlewareHandler<ServerEnv> {
  return async (c, next) => {
    for (const [name, value] of HEADERS) c.header(name, value);
    const started = performance.now();
    await next();
    const ms = Math.round((performance.now() - started) * 10) / 10;
    log.debug({ method: c.req.method, path: c.req.path, status: c.res.status, ms }, 'request');
  };
}
