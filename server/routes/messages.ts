import { z } from 'zod';
import type { Actor, Parley } from '../../core/parley.ts';
import { type Message, Turn } from '../../core/protocol/entities.ts';
import { AppError } from '../../core/protocol/errors.ts';
import {
  ForwardMessage,
  MAX_MESSAGE_BYTES,
  MAX_PAGE,
  MessagePage,
  Posted,
  PostedAndIdle,
  PostMessage,
} from '../../core/protocol/requests.ts';
import { BOUNDS } from '../bounds.ts';
import { endpoint, type ServerApp } from '../endpoint.ts';
import { MESSAGES_PATH } from '../idempotency.ts';
import { limitOf, WholeNumber } from './paging.ts';

const tag = 'Messages';

const Page = z.strictObject({
  before: WholeNumber.optional().describe('rows with a smaller seq'),
  after: WholeNumber.optional().describe('rows with a greater seq'),
  limit: limitOf(50),
  head: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe('read the branch that ends with this message, not the active one'),
});

const Wait = z.strictObject({
  wait: z.literal('idle').optional().describe('answer when no turn of the chat is queued or running'),
  timeoutMs: WholeNumber.optional().describe('longest wait; then the answer has `idle: false`'),
});

/** Throws AppError `too_large` for a text over 256 KB in UTF-8. */
export function checkMessageSize(content: string): void {
  if (Buffer.byteLength(content) > MAX_MESSAGE_BYTES) {
    throw new AppError('too_large', `A message has at most ${MAX_MESSAGE_BYTES} bytes of UTF-8`, {
      limit: MAX_MESSAGE_BYTES,
    });
  }
}

async function messagesAfter(parley: Parley, actor: Actor, world: string, chat: string, seq: number) {
  const found: Message[] = [];
  let after = seq;
  while (found.length < BOUNDS.waitMessages) {
    const page = await parley.messages(actor, world, chat, { after, limit: MAX_PAGE });
    found.push(...page.messages);
    const last = page.messages.at(-1);
    if (last === undefined || page.messages.length < MAX_PAGE) break;
    after = last.seq;
  }
  return found;
}

/** `closing` aborts when the server shuts down, so that a waiting client gets its answer. */
export function messageRoutes(app: ServerApp, parley: Parley, closing: AbortSignal): void {
  endpoint(app, {
    method: 'get',
    path: MESSAGES_PATH,
    summary: 'Read messages of the active branch, ascending by seq; the newest page where no bound is given',
    tag,
    query: Page,
    answer: { status: 200, schema: MessagePage },
    run: ({ actor, ids, query }) =>
      parley.messages(actor, ids.world, ids.chat, {
        limit: query.limit,
        ...(query.before === undefined ? {} : { before: query.before }),
        ...(query.after === undefined ? {} : { after: query.after }),
        ...(query.head === undefined ? {} : { head: query.head }),
      }),
  });
  endpoint(app, {
    method: 'post',
    path: MESSAGES_PATH,
    summary: 'Say something; agents work on whether or not anyone listens',
    description: 'With `?wait=idle` the answer also has `idle`, the new `messages` and the pending `approvals`.',
    tag,
    query: Wait,
    body: PostMessage,
    answer: { status: 201, schema: z.union([Posted, PostedAndIdle]) },
    creates: true,
    errors: ['empty_message'],
    run: async ({ actor, ids, query, body, idem, signal }) => {
      checkMessageSize(body.content);
      const { world, chat } = ids;
      if (query.wait === undefined) return parley.post(actor, world, chat, body.content, idem);
      const posted = await parley.post(actor, world, chat, body.content, idem);
      const timeoutMs = Math.min(query.timeoutMs ?? BOUNDS.defaultWaitMs, BOUNDS.waitMs);
      const idle = await parley.whenIdle(actor, world, chat, timeoutMs, AbortSignal.any([signal, closing]));
      const messages = await messagesAfter(parley, actor, world, chat, posted.message.seq);
      return { ...posted, idle, messages, approvals: await parley.listApprovals(actor, world, 'pending', chat) };
    },
  });
  endpoint(app, {
    method: 'post',
    path: '/api/v1/worlds/:world/chats/:chat/messages/:message/forward',
    summary: 'Wake an agent for a message, such as one that was only referenced',
    tag,
    body: ForwardMessage,
    answer: { status: 201, schema: Turn },
    creates: true,
    errors: ['conflict'],
    run: ({ actor, ids, body, idem }) => parley.forward(actor, ids.world, ids.chat, ids.message, body.agentId, idem),
  });
}
