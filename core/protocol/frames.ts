import { z } from 'zod';
import { AnswerApproval, MAX_MESSAGE_BYTES } from './requests.ts';

export { SUBPROTOCOL } from './subprotocol.ts';

const frameId = z.string().min(1).max(128).describe('echoed in the ack; it is the idempotency key');
const world = z.string().min(1).max(128);
const chat = z.string().min(1).max(128);

/** What a client may send over the socket. */
export const ClientFrame = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('subscribe'),
    id: frameId.optional(),
    world,
    chat: chat.optional(),
    after: z.int().nonnegative().optional(),
  }),
  z.strictObject({ type: z.literal('unsubscribe'), id: frameId.optional(), world }),
  z.strictObject({
    type: z.literal('message'),
    id: frameId,
    world,
    chat,
    content: z.string().max(MAX_MESSAGE_BYTES),
  }),
  AnswerApproval.extend({
    type: z.literal('answer'),
    id: frameId,
    world,
    approval: z.string().min(1).max(256),
  }),
  z.strictObject({ type: z.literal('stop'), id: frameId, world, chat }),
  z.strictObject({ type: z.literal('ping') }),
]);
export type ClientFrame = z.infer<typeof ClientFrame>;

/** What the server sends beside events. */
export type ServerFrame =
  | { type: 'subscribed'; world: string; seq: number }
  | { type: 'resync'; world: string; seq: number }
  | { type: 'ack'; id: string; ok: true; [key: string]: unknown }
  /** An answer that came too late also has `accepted`, `reason` and the `approval` as it is. */
  | { type: 'ack'; id: string; ok: false; error: string; message: string; [key: string]: unknown }
  | { type: 'error'; error: string; message: string }
  | { type: 'pong' };
