import type { Actor, Parley } from '../core/parley.ts';
import { AppError } from '../core/protocol/errors.ts';
import { ClientFrame } from '../core/protocol/frames.ts';
import { parseJson } from './body.ts';
import { toAppError } from './failure.ts';
import { ANSWER_PATH, idempotency, MESSAGES_PATH } from './idempotency.ts';
import { parseInput } from './issues.ts';
import type { Live } from './live.ts';
import { checkMessageSize } from './routes/messages.ts';
import { type SocketClient, SocketSink } from './socket-client.ts';

interface FrameContext {
  parley: Parley;
  live: Live;
  client: SocketClient;
  /** Asks anew for each frame, so that a revoked token can do nothing more. */
  actor: () => Promise<Actor>;
}

const idOf = (value: unknown): string | undefined => {
  const id = value !== null && typeof value === 'object' && 'id' in value ? value.id : undefined;
  return typeof id === 'string' && id !== '' && id.length <= 128 ? id : undefined;
};

/** Reads one frame and does what it asks; every outcome is told to the client. Never throws. */
export async function handleFrame(context: FrameContext, text: string): Promise<void> {
  const { client, parley } = context;
  let id: string | undefined;
  let isValid = false;
  try {
    const value = parseJson(text, 'The frame');
    id = idOf(value);
    const content = (value as { content?: unknown } | null)?.content;
    if (typeof content === 'string') checkMessageSize(content);
    const frame = parseInput(ClientFrame, value, 'frame');
    isValid = true;
    const answer = await obey(context, frame);
    if (id !== undefined) client.send({ ok: true, ...answer, type: 'ack', id });
  } catch (thrown) {
    const error = toAppError(thrown, parley.log, { over: 'socket' });
    const told = { error: error.code, message: error.message };
    // A frame that is not one of the protocol is an error of the connection, beside its own answer where it has an id.
    if (!isValid || id === undefined) client.send({ type: 'error', ...told });
    if (id !== undefined) client.send({ type: 'ack', id, ok: false, ...told });
  }
}

async function obey(context: FrameContext, frame: ClientFrame): Promise<Record<string, unknown>> {
  const { client, parley } = context;
  switch (frame.type) {
    case 'ping':
      client.send({ type: 'pong' });
      return {};
    case 'unsubscribe':
      client.subscriptions.get(frame.world)?.close();
      client.subscriptions.delete(frame.world);
      return {};
    case 'subscribe':
      await subscribe(context, frame, await context.actor());
      return {};
    case 'message': {
      const actor = await context.actor();
      const call = { path: MESSAGES_PATH, ids: [frame.world, frame.chat] };
      const idem = idempotency(actor, call, frame.id, { content: frame.content });
      return { ...(await parley.post(actor, frame.world, frame.chat, frame.content, idem)) };
    }
    case 'answer':
      return answer(context, frame);
    case 'stop':
      return { ...(await parley.stop(await context.actor(), frame.world, frame.chat)) };
  }
}

async function answer(
  { parley, actor: who }: FrameContext,
  { type: _, id, world, approval, ...input }: Extract<ClientFrame, { type: 'answer' }>,
): Promise<Record<string, unknown>> {
  const actor = await who();
  const idem = idempotency(actor, { path: ANSWER_PATH, ids: [world, approval] }, id, input);
  const answered = await parley.answerApproval(actor, world, approval, input, idem);
  if (answered.accepted) return { ...answered };
  return { ...answered, ok: false, error: 'conflict', message: answered.reason };
}

async function subscribe(
  { client, live, parley }: FrameContext,
  frame: Extract<ClientFrame, { type: 'subscribe' }>,
  actor: Actor,
): Promise<void> {
  const { world, chat, after } = frame;
  if (chat !== undefined) await parley.getChat(actor, world, chat);
  const former = client.subscriptions.get(world);
  const max = live.bounds.subscriptionsPerSocket;
  if (former === undefined && client.subscriptions.size >= max) {
    throw new AppError('too_many', `A socket has at most ${max} subscriptions; unsubscribe from a world first`);
  }
  former?.close();
  client.subscriptions.delete(world);
  let isEnded = false;
  const sink = new SocketSink(client, world, () => {
    isEnded = true;
  });
  const subscription = await live.hub.subscribe({ world, chat, after }, sink);
  if (!client.isOpen) subscription.close();
  else if (!isEnded) client.subscriptions.set(world, subscription);
}
