import { z } from 'zod';
import type { Parley } from '../../core/parley.ts';
import { Chat, Turn } from '../../core/protocol/entities.ts';
import { BranchList, EditMessage, ForkChat, Posted, TurnList } from '../../core/protocol/requests.ts';
import { endpoint, type ServerApp } from '../endpoint.ts';
import { checkMessageSize } from './messages.ts';

const tag = 'Branches';
const CHAT = '/api/v1/worlds/:world/chats/:chat';

/** What people do to what was said already. Nothing is lost: it stays readable on its branch. */
export function branchRoutes(app: ServerApp, parley: Parley): void {
  endpoint(app, {
    method: 'get',
    path: `${CHAT}/branches`,
    summary: 'List the ways that a chat went on; the one with the chat’s head is the active one',
    tag,
    answer: { status: 200, schema: BranchList },
    run: async ({ actor, ids }) => ({ branches: await parley.branches(actor, ids.world, ids.chat) }),
  });
  endpoint(app, {
    method: 'patch',
    path: `${CHAT}/messages/:message`,
    summary: 'Edit what a person said: it is said anew on a new branch, and answered from there',
    description: 'Running turns are stopped first. Members edit their own messages, owners everybody’s.',
    tag,
    body: EditMessage,
    answer: { status: 201, schema: Posted },
    creates: true,
    errors: ['empty_message', 'conflict'],
    run: ({ actor, ids, body, idem }) => {
      checkMessageSize(body.content);
      return parley.editMessage(actor, ids.world, ids.chat, ids.message, body.content, idem);
    },
  });
  endpoint(app, {
    method: 'delete',
    path: `${CHAT}/messages/:message`,
    summary: 'Delete what was said; the message keeps its place',
    description: 'Turns go on. Members delete their own messages, owners everybody’s. Copies in forked chats stay.',
    tag,
    run: ({ actor, ids }) => parley.deleteMessage(actor, ids.world, ids.chat, ids.message),
  });
  endpoint(app, {
    method: 'post',
    path: `${CHAT}/messages/:message/regenerate`,
    summary: 'Let an agent answer again, or all agents that a person’s message woke, on a new branch',
    description: 'Running turns are stopped first.',
    tag,
    body: z.strictObject({}),
    answer: { status: 201, schema: TurnList },
    creates: true,
    errors: ['conflict'],
    run: ({ actor, ids, idem }) => parley.regenerate(actor, ids.world, ids.chat, ids.message, idem),
  });
  endpoint(app, {
    method: 'post',
    path: `${CHAT}/turns/:turn/retry`,
    summary: 'Take a failed or stopped turn once more',
    tag,
    body: z.strictObject({}),
    answer: { status: 201, schema: Turn },
    creates: true,
    errors: ['conflict'],
    run: ({ actor, ids, idem }) => parley.retryTurn(actor, ids.world, ids.chat, ids.turn, idem),
  });
  endpoint(app, {
    method: 'post',
    path: `${CHAT}/fork`,
    summary: 'Begin a new chat with a copy of this one up to a message',
    tag,
    body: ForkChat,
    answer: { status: 201, schema: Chat },
    creates: true,
    errors: ['too_large'],
    run: ({ actor, ids, body, idem }) => parley.forkChat(actor, ids.world, ids.chat, body.messageId, idem),
  });
}
