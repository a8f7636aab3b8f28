import type { Actor } from '../core/parley.ts';
import type { Sink } from './cursor.ts';
import type { Subscription } from './hub.ts';
import type { Live } from './live.ts';

const encoder = new TextEncoder();
const OPENING = encoder.encode('retry: 2000\n: open\n\n');
const HEARTBEAT = encoder.encode(': ping\n\n');

interface StreamRequest {
  world: string;
  chat: string | undefined;
  after: number | undefined;
  actor: Actor;
  token: string | null;
}

/**
 * A world's events as server-sent events: all are of the default type `message`, stored ones have their seq as id.
 * A `resync` event says that the client must load the state anew. Throws AppError `not_found`, `too_many`.
 */
export async function eventStream(live: Live, request: StreamRequest): Promise<ReadableStream<Uint8Array>> {
  const { bounds } = live;
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  let waiting: ((isOpen: boolean) => void)[] = [];
  let subscription: Subscription | null = null;
  let stalled: NodeJS.Timeout | undefined;

  const wake = (isOpen: boolean): void => {
    clearTimeout(stalled);
    stalled = undefined;
    const resolvers = waiting;
    waiting = [];
    for (const resolve of resolvers) resolve(isOpen);
  };
  const finish = (): void => {
    controller = null;
    leave();
    subscription?.close();
    wake(false);
  };
  const close = (): void => {
    const open = controller;
    finish();
    open?.close();
  };
  const write = (bytes: Uint8Array): void => {
    if (controller === null) return;
    if (-(controller.desiredSize ?? 0) > bounds.hardBufferBytes) close();
    else controller.enqueue(bytes);
  };
  const isCongested = (): boolean => controller !== null && (controller.desiredSize ?? 0) <= 0;
  const leave = live.connections.add({
    tokenId: request.actor.tokenId,
    token: request.token,
    beat: () => {
      if (!isCongested()) write(HEARTBEAT);
    },
    close,
  });

  const stream = new ReadableStream<Uint8Array>(
    {
      start(started) {
        controller = started;
      },
      pull: () => wake(true),
      cancel: finish,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: bounds.softBufferBytes }),
  );
  const sink: Sink = {
    opened({ seq, resync }) {
      if (!resync) return;
      const frame = JSON.stringify({ type: 'resync', world: request.world, seq });
      write(encoder.encode(`event: resync\ndata: ${frame}\n\n`));
    },
    isCongested,
    drained: () =>
      new Promise((resolve) => {
        if (!isCongested()) return resolve(controller !== null);
        waiting.push(resolve);
        stalled ??= setTimeout(close, bounds.stallMs);
      }),
    write: (event) => write(event.sse),
    cork: () => {},
    uncork: () => {},
    ended: close,
  };
  try {
    write(OPENING);
    const opened = await live.hub.subscribe(request, sink);
    // The client, or its token, may be gone meanwhile.
    if (controller === null) opened.close();
    else subscription = opened;
    return stream;
  } catch (error) {
    finish();
    throw error;
  }
}
