import type { EncodedEvent } from './encoded.ts';

/** Where a client's events go. No method may throw. */
export interface Sink {
  /** The first thing that it hears: the next stored event has a seq greater than `seq`. */
  opened(start: { seq: number; resync: boolean }): void;
  /** More is unsent than a client that keeps up would have. */
  isCongested(): boolean;
  /** Resolves true once it is no longer congested, false when the client is gone or was cut off. */
  drained(): Promise<boolean>;
  write(event: EncodedEvent): void;
  /** Several writes may follow, to be sent as one. */
  cork(): void;
  uncork(): void;
  /** Nothing follows: the world is gone, or its log could not be read. */
  ended(reason: 'deleted' | 'failed'): void;
}

/** A client's place in the log of one world. */
export interface Cursor {
  readonly chat: string | undefined;
  readonly sink: Sink;
  /** The last stored event that was sent, or passed over for another chat. */
  seq: number;
  /** `reading`: it follows the log at its own pace, and gets nothing from the bus. */
  mode: 'starting' | 'reading' | 'live' | 'closed';
  /** Live events up to this ticket are in the text that it has got already. */
  joined: number;
  /** It was too slow for a live event, so that it needs the text so far before the next. */
  missed: boolean;
}
