import { Hono } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { describeRoute, resolver } from 'hono-openapi';
import { z } from 'zod';
import type { Parley } from '../core/parley.ts';
import { AppError } from '../core/protocol/errors.ts';
import { docsRoutes } from './docs.ts';
import type { ServerApp, ServerContext, ServerEnv } from './endpoint.ts';
import { toAppError } from './failure.ts';
import { type GuardOptions, guardAccess, guardRequest } from './guards.ts';
import { secureHeaders } from './headers.ts';
import { type Live, openLive } from './live.ts';
import { pageFiles } from './page.ts';
import { sessionRoutes, tokenRoutes } from './routes/access.ts';
import { agentRoutes } from './routes/agents.ts';
import { approvalRoutes, permissionRoutes } from './routes/approvals.ts';
import { branchRoutes } from './routes/branches.ts';
import { chatRoutes, turnRoutes } from './routes/chats.ts';
import { eventRoutes } from './routes/events.ts';
import { messageRoutes } from './routes/messages.ts';
import { modelRoutes } from './routes/models.ts';
import { worldRoutes } from './routes/worlds.ts';

export interface AppOptions extends GuardOptions {
  /** Where the built page lies; null where there is none. */
  webDir: string | null;
  /** Shared with the sockets of a listening server; made where it is left out. */
  live?: Live;
  /** Milliseconds, for the limit on wrong tokens. */
  now?: () => number;
}

const Health = z.strictObject({ status: z.literal('ok'), version: z.string() });

/** The whole HTTP side; works without a listening server through `app.request()`, or `localFetch`. */
export function createApp(parley: Parley, options: AppOptions): ServerApp {
  const live = options.live ?? openLive(parley);
  const app: ServerApp = new Hono<ServerEnv>();

  app.onError((thrown, c) => {
    const error = toAppError(thrown, parley.log, { method: c.req.method, path: c.req.path });
    c.header('Cache-Control', 'no-store');
    // The rest of the body is not read, so that the connection cannot serve another request.
    if (error.code === 'too_large') c.header('Connection', 'close');
    return c.json(error.toBody(), error.status as ContentfulStatusCode);
  });
  app.notFound((c) => {
    const allowed = allowedMethods(app, c as ServerContext);
    const error =
      allowed.length > 0
        ? new AppError('method_not_allowed', `${c.req.method} does not work here; ${allowed.join(', ')} does`)
        : new AppError('not_found', `There is nothing at ${c.req.path.slice(0, 200)}`);
    if (allowed.length > 0) c.header('Allow', allowed.join(', '));
    return c.json(error.toBody(), error.status as ContentfulStatusCode);
  });

  app.use(secureHeaders(parley.log));
  app.use(guardRequest(options));
  app.use(guardAccess(parley, options));

  app.get(
    '/health',
    describeRoute({
      summary: 'Whether the server is alive; needs no token',
      tags: ['Access'],
      security: [],
      responses: { 200: { description: 'Alive', content: { 'application/json': { schema: resolver(Health) } } } },
    }),
    (c) => c.json({ status: 'ok', version: parley.version }),
  );
  sessionRoutes(app, parley, options, options.now ?? Date.now);
  tokenRoutes(app, parley, (tokenId) => live.connections.revoke(tokenId));
  worldRoutes(app, parley);
  agentRoutes(app, parley);
  chatRoutes(app, parley);
  messageRoutes(app, parley, live.closing);
  turnRoutes(app, parley);
  branchRoutes(app, parley);
  approvalRoutes(app, parley);
  permissionRoutes(app, parley);
  eventRoutes(app, parley, live);
  modelRoutes(app, parley);
  docsRoutes(app, parley.version);
  app.get('*', pageFiles(options.webDir));
  return app;
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** The methods that a path has; neither what runs for every call nor the page counts. */
function allowedMethods(app: ServerApp, c: ServerContext): string[] {
  return METHODS.filter((method) =>
    app.router
      .match(method, c.req.path)[0]
      .some(([[, route]]) => route.method === method && route.path !== '*' && route.path !== '/*'),
  );
}
