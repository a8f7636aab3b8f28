import { setCookie } from 'hono/cookie';
import { describeRoute, resolver } from 'hono-openapi';
import { z } from 'zod';
import type { Parley } from '../../core/parley.ts';
import { Role, Token } from '../../core/protocol/entities.ts';
import { AppError } from '../../core/protocol/errors.ts';
import { CreatedToken, CreateSession, CreateToken } from '../../core/protocol/requests.ts';
import { SESSION_COOKIE } from '../access.ts';
import { readJson } from '../body.ts';
import { BOUNDS } from '../bounds.ts';
import { endpoint, errorResponses, type ServerApp, type ServerContext } from '../endpoint.ts';
import { authenticate, type GuardOptions } from '../guards.ts';
import { parseInput } from '../issues.ts';
import { failureLimit } from '../session-limit.ts';

/** Tokens of other people; `revoked` hears which one is no longer good. */
export function tokenRoutes(app: ServerApp, parley: Parley, revoked: (tokenId: string) => void): void {
  const tag = 'Access';
  endpoint(app, {
    method: 'get',
    path: '/api/v1/tokens',
    summary: 'List the tokens, never their text',
    tag,
    answer: { status: 200, schema: z.strictObject({ tokens: z.array(Token) }) },
    run: async ({ actor }) => ({ tokens: await parley.listTokens(actor) }),
  });
  endpoint(app, {
    method: 'post',
    path: '/api/v1/tokens',
    summary: 'Make a token; only this answer has its text',
    tag,
    body: CreateToken,
    answer: { status: 201, schema: CreatedToken },
    creates: true,
    run: ({ actor, body, idem }) => parley.createToken(actor, body, idem),
  });
  endpoint(app, {
    method: 'delete',
    path: '/api/v1/tokens/:id',
    summary: 'Revoke a token; its sockets are closed',
    tag,
    run: async ({ actor, ids }) => {
      await parley.removeToken(actor, ids.id);
      revoked(ids.id);
    },
  });
}

const Session = z.strictObject({ role: Role, name: z.string().describe('the person’s name in the room') });

function addressOf(c: ServerContext): string {
  const env = c.env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined;
  return env?.incoming?.socket?.remoteAddress ?? 'local';
}

/** The browser’s way in: a token once, then a cookie that scripts cannot read. */
export function sessionRoutes(app: ServerApp, parley: Parley, options: GuardOptions, now: () => number): void {
  const tag = 'Access';
  const limit = failureLimit(BOUNDS.sessionFailures, now);
  const answer = {
    description: 'Who the token belongs to',
    content: { 'application/json': { schema: resolver(Session) } },
  };
  const cookie = { httpOnly: true, sameSite: 'Strict', path: '/' } as const;

  app.post(
    '/api/v1/session',
    describeRoute({
      summary: 'Open a session: checks a token and sets it as a cookie',
      tags: [tag],
      security: [],
      requestBody: { required: true, content: { 'application/json': { schema: resolver(CreateSession) } } },
      responses: {
        200: answer,
        ...errorResponses(['invalid', 'invalid_json', 'unauthorized', 'host_refused', 'origin_refused', 'too_many']),
      },
    }),
    async (c) => {
      const address = addressOf(c);
      if (limit.isBlocked(address)) {
        c.header('Retry-After', '60');
        throw new AppError('too_many', 'Too many wrong tokens; wait a minute');
      }
      const { token } = parseInput(CreateSession, (await readJson(c, BOUNDS.bodyBytes)) ?? {}, 'body');
      const actor = await authenticate(parley, options, token, c.get('isLocal')).catch((error: unknown) => {
        if (error instanceof AppError && error.code === 'unauthorized') limit.failed(address);
        throw error;
      });
      if (options.auth) setCookie(c, SESSION_COOKIE, token, { ...cookie, maxAge: 400 * 24 * 3600 });
      return c.json({ role: actor.role, name: actor.name });
    },
  );
  endpoint(app, {
    method: 'get',
    path: '/api/v1/session',
    summary: 'Who calls',
    tag,
    answer: { status: 200, schema: Session },
    run: async ({ actor }) => ({ role: actor.role, name: actor.name }),
  });
  app.delete(
    '/api/v1/session',
    describeRoute({
      summary: 'Forget the cookie',
      tags: [tag],
      responses: {
        204: { description: 'Done' },
        ...errorResponses(['unauthorized', 'host_refused', 'origin_refused']),
      },
    }),
    (c) => {
      setCookie(c, SESSION_COOKIE, '', { ...cookie, maxAge: 0 });
      return c.body(null, 204);
    },
  );
}
