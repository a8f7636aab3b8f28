import { z } from 'zod';
import type { Parley } from '../../core/parley.ts';
import { Chat } from '../../core/protocol/entities.ts';
import { CreateChat, PatchChat, TurnList } from '../../core/protocol/requests.ts';
import { endpoint, type ServerApp } from '../endpoint.ts';

const tag = 'Chats';

export function chatRoutes(app: ServerApp, parley: Parley): void {
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds/:world/chats',
    summary: 'List the chats of a world',
    tag,
    answer: { status: 200, schema: z.strictObject({ chats: z.array(Chat) }) },
    run: async ({ actor, ids }) => ({ chats: await parley.listChats(actor, ids.world) }),
  });
  endpoint(app, {
    method: 'post',
    path: '/api/v1/worlds/:world/chats',
    summary: 'Create a chat; without a title it gets one from its first message',
    tag,
    body: CreateChat,
    answer: { status: 201, schema: Chat },
    creates: true,
    run: ({ actor, ids, body, idem }) => parley.createChat(actor, ids.world, body, idem),
  });
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds/:world/chats/:chat',
    summary: 'Read a chat',
    tag,
    answer: { status: 200, schema: Chat },
    run: ({ actor, ids }) => parley.getChat(actor, ids.world, ids.chat),
  });
  endpoint(app, {
    method: 'patch',
    path: '/api/v1/worlds/:world/chats/:chat',
    summary: 'Rename a chat, or make another of its branches the active one',
    tag,
    body: PatchChat,
    answer: { status: 200, schema: Chat },
    run: ({ actor, ids, body }) => parley.patchChat(actor, ids.world, ids.chat, body),
  });
  endpoint(app, {
    method: 'delete',
    path: '/api/v1/worlds/:world/chats/:chat',
    summary: 'Delete a chat',
    tag,
    run: ({ actor, ids }) => parley.deleteChat(actor, ids.world, ids.chat),
  });
}

const Stopped = z.strictObject({ stopped: z.int().nonnegative().describe('how many turns were ended') });

/** What steers the turns of a chat. */
export function turnRoutes(app: ServerApp, parley: Parley): void {
  const turns = 'Turns';
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds/:world/chats/:chat/turns',
    summary: 'List the turns of a chat, newest first',
    tag: turns,
    answer: { status: 200, schema: TurnList },
    run: async ({ actor, ids }) => ({ turns: await parley.turns(actor, ids.world, ids.chat) }),
  });
  endpoint(app, {
    method: 'post',
    path: '/api/v1/worlds/:world/chats/:chat/stop',
    summary: 'End every turn of the chat; answers when that is so',
    tag: turns,
    body: z.strictObject({}),
    answer: { status: 200, schema: Stopped },
    run: ({ actor, ids }) => parley.stop(actor, ids.world, ids.chat),
  });
  endpoint(app, {
    method: 'post',
    path: '/api/v1/worlds/:world/chats/:chat/pause',
    summary: 'Let running turns finish and start none; messages are accepted',
    tag: turns,
    body: z.strictObject({}),
    answer: { status: 200, schema: Chat },
    run: ({ actor, ids }) => parley.pause(actor, ids.world, ids.chat),
  });
  endpoint(app, {
    method: 'post',
    path: '/api/v1/worlds/:world/chats/:chat/resume',
    summary: 'Start turns again',
    tag: turns,
    body: z.strictObject({}),
    answer: { status: 200, schema: Chat },
    run: ({ actor, ids }) => parley.resume(actor, ids.world, ids.chat),
  });
  endpoint(app, {
    method: 'post',
    path: '/api/v1/worlds/:world/chats/:chat/continue',
    summary: 'Grant the reached limit the same amount again and go on with what it held back',
    tag: turns,
    body: z.strictObject({}),
    answer: { status: 200, schema: TurnList },
    errors: ['nothing_to_continue'],
    run: ({ actor, ids }) => parley.continueChat(actor, ids.world, ids.chat),
  });
}
