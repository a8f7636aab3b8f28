import { isStored } from '../core/protocol/events.ts';
import type { EncodedEvent } from './encoded.ts';

/** The newest stored events of a world, gap-free, within bounds: who is little behind needs no read of the log. */
export class EventWindow {
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  #events: EncodedEvent[] = [];
  #bytes = 0;
  #first = 1;

  constructor(maxEvents: number, maxBytes: number) {
    this.#maxEvents = maxEvents;
    this.#maxBytes = maxBytes;
  }

  push(encoded: EncodedEvent): void {
    if (!isStored(encoded.event)) return;
    const { seq } = encoded.event;
    if (seq !== this.#first + this.#events.length) {
      this.#events = [];
      this.#bytes = 0;
      this.#first = seq;
    }
    this.#events.push(encoded);
    this.#bytes += encoded.json.length;
    let drop = 0;
    while (
      this.#events.length - drop > this.#maxEvents ||
      (this.#bytes > this.#maxBytes && drop < this.#events.length)
    ) {
      this.#bytes -= this.#events[drop]?.json.length ?? 0;
      drop += 1;
    }
    // Dropping one by one would move the whole array each time.
    if (drop > 0) {
      this.#events.splice(0, drop);
      this.#first += drop;
    }
  }

  /** All events after `seq`, or null where the window does not reach back that far. */
  after(seq: number): readonly EncodedEvent[] | null {
    if (this.#events.length === 0 || seq + 1 < this.#first) return null;
    return this.#events.slice(seq + 1 - this.#first);
  }
}
