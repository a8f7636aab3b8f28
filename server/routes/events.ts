import { describeRoute, resolver } from 'hono-openapi';
import { z } from 'zod';
import type { Parley } from '../../core/parley.ts';
import { AppError } from '../../core/protocol/errors.ts';
import { LiveEvent, StoredEvent } from '../../core/protocol/events.ts';
import { endpoint, errorResponses, type ServerApp } from '../endpoint.ts';
import { parseInput } from '../issues.ts';
import type { Live } from '../live.ts';
import { eventStream } from '../sse.ts';
import { limitOf, WholeNumber } from './paging.ts';

const tag = 'Events';

const Stream = z.strictObject({
  after: WholeNumber.optional().describe('the last seq that the client has; Last-Event-ID goes before it'),
  chat: z.string().min(1).max(128).optional().describe('leave out events of other chats'),
});

export function eventRoutes(app: ServerApp, parley: Parley, live: Live): void {
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds/:world/events',
    summary: 'Read the log of stored events, ascending by seq',
    tag,
    query: z.strictObject({ after: WholeNumber.default(0), limit: limitOf(100) }),
    answer: { status: 200, schema: z.strictObject({ events: z.array(StoredEvent) }) },
    run: async ({ ids, query }) => {
      if ((await parley.events.head(ids.world)) === null) {
        throw new AppError('not_found', `There is no world ${JSON.stringify(ids.world)}`);
      }
      return { events: await parley.events.read(ids.world, query.after, query.limit) };
    },
  });
  app.get(
    '/api/v1/worlds/:world/events/stream',
    describeRoute({
      summary: 'Follow the events of a world as server-sent events',
      description:
        'Every `data` is one event; stored ones have their seq as `id`. With `Last-Event-ID` or `after` all stored events since come first, each once, in order. An `event: resync` means that the client must load the state anew.',
      tags: [tag],
      parameters: [
        { in: 'query', name: 'after', schema: { type: 'integer', minimum: 0 } },
        { in: 'query', name: 'chat', schema: { type: 'string' } },
        { in: 'header', name: 'Last-Event-ID', schema: { type: 'integer', minimum: 0 } },
      ],
      responses: {
        200: {
          description: 'An endless stream',
          content: { 'text/event-stream': { schema: resolver(z.union([StoredEvent, LiveEvent])) } },
        },
        ...errorResponses(['invalid', 'unauthorized', 'forbidden', 'not_found', 'too_many', 'internal']),
      },
    }),
    async (c) => {
      const actor = c.get('actor');
      const query = parseInput(Stream, c.req.query(), 'query');
      const lastEventId = c.req.header('last-event-id');
      const after = lastEventId === undefined ? query.after : parseInput(WholeNumber, lastEventId, 'Last-Event-ID');
      const world = c.req.param('world');
      if (query.chat !== undefined) await parley.getChat(actor, world, query.chat);
      const stream = await eventStream(live, { world, chat: query.chat, after, actor, token: c.get('token') });
      c.header('Content-Type', 'text/event-stream; charset=utf-8');
      c.header('X-Accel-Buffering', 'no');
      return c.body(stream);
    },
  );
}
