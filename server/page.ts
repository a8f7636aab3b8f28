import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { serveStatic } from '@hono/node-server/serve-static';
import type { MiddlewareHandler } from 'hono';
import type { ServerEnv } from './endpoint.ts';

const MISSING = `The page is not built yet.

Run "npm run build" and reload, or talk to the server over its API:
  /health            is it alive
  /docs              the API, to read and try
`;

/**
 * The page's files. Names under /assets hold a hash of their content and are kept for good; the rest is asked for
 * again each time. A path of the page's own, such as /w/demo, answers with its index.
 */
export function pageFiles(webDir: string | null): MiddlewareHandler<ServerEnv> {
  if (webDir === null || !existsSync(join(webDir, 'index.html'))) {
    return async (c, next) => (wantsPage(c.req.path, c.req.header('accept')) ? c.text(MISSING) : next());
  }
  const file = serveStatic<ServerEnv>({ root: webDir, precompressed: true });
  const index = serveStatic<ServerEnv>({ root: webDir, path: 'index.html' });
  return async (c, next) => {
    const isHashed = c.req.path.startsWith('/assets/');
    c.header('Cache-Control', isHashed ? 'public, max-age=31536000, immutable' : 'no-cache');
    const found = await file(c, async () => {});
    if (found !== undefined) return found;
    c.header('Cache-Control', 'no-cache');
    if (wantsPage(c.req.path, c.req.header('accept'))) {
      const page = await index(c, async () => {});
      if (page !== undefined) return page;
    }
    c.header('Cache-Control', 'no-store');
    return next();
  };
}

/** A navigation to the page, not a missing file or call. */
function wantsPage(path: string, accept: string | undefined): boolean {
  if (path === '/' || path === '/w' || path.startsWith('/w/')) return true;
  const last = path.slice(path.lastIndexOf('/') + 1);
  return !path.startsWith('/api') && !last.includes('.') && (accept ?? '').includes('text/html');
}
