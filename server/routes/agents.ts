import { z } from 'zod';
import type { Parley } from '../../core/parley.ts';
import { WorldAgent } from '../../core/protocol/entities.ts';
import { CreateAgent, PatchAgent } from '../../core/protocol/requests.ts';
import { endpoint, type ServerApp } from '../endpoint.ts';

const tag = 'Agents';

export function agentRoutes(app: ServerApp, parley: Parley): void {
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds/:world/agents',
    summary: 'List the agents of a world',
    tag,
    answer: { status: 200, schema: z.strictObject({ agents: z.array(WorldAgent) }) },
    run: async ({ actor, ids }) => ({ agents: await parley.listAgents(actor, ids.world) }),
  });
  endpoint(app, {
    method: 'post',
    path: '/api/v1/worlds/:world/agents',
    summary: 'Create an agent; its id is the slug of its name where none is given',
    tag,
    body: CreateAgent,
    answer: { status: 201, schema: WorldAgent },
    creates: true,
    errors: ['agent_exists', 'invalid_id', 'reserved_id'],
    run: ({ actor, ids, body, idem }) => parley.createAgent(actor, ids.world, body, idem),
  });
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds/:world/agents/:agent',
    summary: 'Read an agent',
    tag,
    answer: { status: 200, schema: WorldAgent },
    run: ({ actor, ids }) => parley.getAgent(actor, ids.world, ids.agent),
  });
  endpoint(app, {
    method: 'patch',
    path: '/api/v1/worlds/:world/agents/:agent',
    summary: 'Change the fields that are named',
    tag,
    body: PatchAgent,
    answer: { status: 200, schema: WorldAgent },
    errors: ['agent_exists'],
    run: ({ actor, ids, body }) => parley.patchAgent(actor, ids.world, ids.agent, body),
  });
  endpoint(app, {
    method: 'delete',
    path: '/api/v1/worlds/:world/agents/:agent',
    summary: 'Remove an agent; its queued turns end stopped',
    tag,
    run: ({ actor, ids }) => parley.removeAgent(actor, ids.world, ids.agent),
  });
}
