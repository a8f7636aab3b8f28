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

  /** The events after `seq`, or null where only the log can tell: the window neither reaches back nor goes on that far. */
  after(seq: number): readonly EncodedEvent[] | null {
    const from = seq + 1 - this.#first;
    return from < 0 || from >= this.#events.length ? null : this.#events.slice(from);
  }
}
