import type { WorldEvent } from '../../core/protocol/events.ts';
import type { ServerFrame } from '../../core/protocol/frames.ts';
import { SUBPROTOCOL } from '../../core/protocol/subprotocol.ts';

export type SocketStatus = 'connecting' | 'live' | 'offline';

export interface SocketOptions {
  readonly world: string;
  /** The last seq that the page has; undefined before the first load. */
  after(): number | undefined;
  onSubscribed(seq: number): void;
  /** The log that the page knows is gone: everything is to be loaded anew. */
  onResync(): void;
  onEvent(event: WorldEvent): void;
  onStatus(status: SocketStatus): void;
  onFailure(code: string, message: string): void;
}

const FIRST_DELAY_MS = 400;
const MAX_DELAY_MS = 15_000;
const PING_MS = 20_000;
const SILENCE_MS = 12_000;
const UNAUTHORIZED = 4401;

/** Milliseconds before the nth try; `random` is in 0..1, so that a thousand pages do not come back at once. */
export function retryDelay(tries: number, random: number): number {
  const whole = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(tries, 10));
  return Math.round(whole * (0.6 + 0.4 * random));
}

/** Follows one world over a WebSocket, comes back by itself and goes on behind the last event. Returns how to end it. */
export function followWorld(options: SocketOptions): () => void {
  let socket: WebSocket | null = null;
  let tries = 0;
  let isClosed = false;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let silence: ReturnType<typeof setTimeout> | undefined;

  const ping = setInterval(() => {
    if (socket?.readyState !== WebSocket.OPEN) return;
    socket.send(JSON.stringify({ type: 'ping' }));
    clearTimeout(silence);
    silence = setTimeout(() => socket?.close(), SILENCE_MS);
  }, PING_MS);

  function open(): void {
    clearTimeout(retry);
    options.onStatus(tries === 0 ? 'connecting' : 'offline');
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const own = new WebSocket(`${scheme}://${location.host}/ws`, [SUBPROTOCOL]);
    socket = own;
    own.onopen = () => {
      const after = options.after();
      own.send(JSON.stringify({ type: 'subscribe', world: options.world, ...(after === undefined ? {} : { after }) }));
    };
    own.onmessage = (message) => {
      clearTimeout(silence);
      hear(JSON.parse(String(message.data)) as ServerFrame | WorldEvent);
    };
    own.onclose = (event) => {
      if (socket !== own || isClosed) return;
      socket = null;
      clearTimeout(silence);
      if (event.code === UNAUTHORIZED) {
        options.onFailure('unauthorized', 'The session has ended');
        return;
      }
      options.onStatus('offline');
      retry = setTimeout(open, retryDelay(tries, Math.random()));
      tries += 1;
    };
  }

  function hear(frame: ServerFrame | WorldEvent): void {
    switch (frame.type) {
      case 'subscribed':
        tries = 0;
        options.onStatus('live');
        options.onSubscribed(frame.seq);
        return;
      case 'resync':
        options.onResync();
        return;
      case 'error':
        options.onFailure(frame.error, frame.message);
        return;
      case 'ack':
      case 'pong':
        return;
      default:
        options.onEvent(frame);
    }
  }

  const retryNow = (): void => {
    if (socket === null && !isClosed) open();
  };
  addEventListener('online', retryNow);
  open();

  return () => {
    isClosed = true;
    clearTimeout(retry);
    clearTimeout(silence);
    clearInterval(ping);
    removeEventListener('online', retryNow);
    socket?.close();
  };
}
