import { z } from 'zod';
import type { Parley } from '../../core/parley.ts';
import { Message, World } from '../../core/protocol/entities.ts';
import { CreateWorld, PatchWorld, WorldDetail, WorldUsage } from '../../core/protocol/requests.ts';
import { endpoint, type ServerApp } from '../endpoint.ts';
import { limitOf } from './paging.ts';

const tag = 'Worlds';

export function worldRoutes(app: ServerApp, parley: Parley): void {
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds',
    summary: 'List the worlds',
    tag,
    answer: { status: 200, schema: z.strictObject({ worlds: z.array(World) }) },
    run: async ({ actor }) => ({ worlds: await parley.listWorlds(actor) }),
  });
  endpoint(app, {
    method: 'post',
    path: '/api/v1/worlds',
    summary: 'Create a world; its id is the slug of its name',
    tag,
    body: CreateWorld,
    answer: { status: 201, schema: World },
    creates: true,
    errors: ['world_exists', 'invalid_id', 'reserved_id'],
    run: ({ actor, body, idem }) => parley.createWorld(actor, body, idem),
  });
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds/:world',
    summary: 'Read a world with its agents and chats',
    tag,
    answer: { status: 200, schema: WorldDetail },
    run: ({ actor, ids }) => parley.getWorld(actor, ids.world),
  });
  endpoint(app, {
    method: 'patch',
    path: '/api/v1/worlds/:world',
    summary: 'Change the fields that are named',
    tag,
    body: PatchWorld,
    answer: { status: 200, schema: World },
    run: ({ actor, ids, body }) => parley.patchWorld(actor, ids.world, body),
  });
  endpoint(app, {
    method: 'delete',
    path: '/api/v1/worlds/:world',
    summary: 'Delete a world with all that is in it',
    tag,
    run: ({ actor, ids }) => parley.deleteWorld(actor, ids.world),
  });
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds/:world/usage',
    summary: 'What the world has used, in all and per agent and chat',
    tag,
    answer: { status: 200, schema: WorldUsage },
    run: ({ actor, ids }) => parley.usage(actor, ids.world),
  });
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds/:world/search',
    summary: 'Full text search over the messages of the world',
    tag,
    query: z.strictObject({ q: z.string().trim().min(1).max(1000), limit: limitOf(50) }),
    answer: { status: 200, schema: z.strictObject({ messages: z.array(Message) }) },
    run: async ({ actor, ids, query }) => ({
      messages: await parley.search(actor, ids.world, query.q, query.limit),
    }),
  });
}
