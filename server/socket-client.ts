import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import type { ServerFrame } from '../core/protocol/frames.ts';
import type { Bounds } from './bounds.ts';
import type { Cursor, Sink } from './cursor.ts';
import { type EncodedEvent, textFrame } from './encoded.ts';
import type { Subscription } from './hub.ts';

/** Close codes of the application's own range. */
export const CLOSE = { shutdown: 1001, failed: 1011, unauthorized: 4401, slow: 4008 } as const;

/**
 * The writing side of one WebSocket. Frames that are shared by many are written to the connection itself: without
 * compression and fragments `ws` writes every frame whole and at once, so that ours stand between its own.
 */
export class SocketClient {
  readonly subscriptions = new Map<string, Subscription>();
  readonly #ws: Pick<WebSocket, 'readyState' | 'close'>;
  readonly #raw: Duplex;
  readonly #bounds: Bounds;
  #draining: Promise<boolean> | null = null;

  constructor(ws: Pick<WebSocket, 'readyState' | 'close'>, raw: Duplex, bounds: Bounds) {
    this.#ws = ws;
    this.#raw = raw;
    this.#bounds = bounds;
  }

  get isOpen(): boolean {
    return this.#ws.readyState === WebSocket.OPEN;
  }

  get isCongested(): boolean {
    return this.#raw.writableLength > this.#bounds.softBufferBytes;
  }

  send(frame: ServerFrame): void {
    this.write(textFrame(JSON.stringify(frame)));
  }

  /** A whole frame. A client that has left too much unread is cut off; it comes back and resumes by seq. */
  write(frame: Buffer): void {
    if (!this.isOpen) return;
    if (this.#raw.writableLength > this.#bounds.hardBufferBytes) this.close(CLOSE.slow, 'slow client');
    else this.#raw.write(frame);
  }

  cork(): void {
    this.#raw.cork();
  }

  uncork(): void {
    this.#raw.uncork();
  }

  /** True when the client has read what was unsent; false when it is gone, or was cut off for taking too long. */
  drained(): Promise<boolean> {
    if (!this.isOpen) return Promise.resolve(false);
    if (!this.isCongested) return Promise.resolve(true);
    this.#draining ??= new Promise<boolean>((resolve) => {
      const finish = (): void => {
        clearTimeout(stalled);
        this.#raw.off('drain', finish);
        this.#raw.off('close', finish);
        this.#draining = null;
        resolve(this.isOpen);
      };
      const stalled = setTimeout(() => {
        this.close(CLOSE.slow, 'slow client');
        finish();
      }, this.#bounds.stallMs);
      this.#raw.once('drain', finish);
      this.#raw.once('close', finish);
    });
    return this.#draining;
  }

  close(code: number, reason: string): void {
    this.dropSubscriptions();
    this.#ws.close(code, reason);
  }

  dropSubscriptions(): void {
    for (const subscription of this.subscriptions.values()) subscription.close();
    this.subscriptions.clear();
  }
}

/** Where the events of one subscription go. */
export class SocketSink implements Sink {
  readonly #client: SocketClient;
  readonly #world: string;
  readonly #onEnd: () => void;
  #hasOpened = false;

  constructor(client: SocketClient, world: string, onEnd: () => void) {
    this.#client = client;
    this.#world = world;
    this.#onEnd = onEnd;
  }

  opened({ seq, resync }: { seq: Cursor['seq']; resync: boolean }): void {
    if (resync) this.#client.send({ type: 'resync', world: this.#world, seq });
    if (!this.#hasOpened) this.#client.send({ type: 'subscribed', world: this.#world, seq });
    this.#hasOpened = true;
  }

  isCongested(): boolean {
    return this.#client.isCongested;
  }

  drained(): Promise<boolean> {
    return this.#client.drained();
  }

  write(event: EncodedEvent): void {
    this.#client.write(event.frame);
  }

  cork(): void {
    this.#client.cork();
  }

  uncork(): void {
    this.#client.uncork();
  }

  ended(reason: 'deleted' | 'failed'): void {
    this.#onEnd();
    if (reason === 'failed') this.#client.close(CLOSE.failed, 'the log could not be read');
    else this.#client.subscriptions.delete(this.#world);
  }
}
