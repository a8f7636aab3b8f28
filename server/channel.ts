import { setImmediate as nextTick } from 'node:timers/promises';
import { isStored, type StoredEvent, type WorldEvent } from '../core/protocol/events.ts';
import type { Bounds } from './bounds.ts';
import type { Cursor, Sink } from './cursor.ts';
import { EncodedEvent } from './encoded.ts';
import { EventWindow } from './event-window.ts';
import type { HubPorts } from './hub.ts';
import { snapshotOf } from './snapshot.ts';

const passes = (cursor: Cursor, event: WorldEvent): boolean =>
  cursor.chat === undefined || !('chat' in event) || event.chat === cursor.chat;

/**
 * One world's listeners. A stored event is sent only where it is the cursor's next; anything else sends the cursor
 * to the log, which it follows until it has caught up. So nothing that goes wrong on the way loses or doubles one.
 */
export class Channel {
  readonly #world: string;
  readonly #ports: HubPorts;
  readonly #bounds: Bounds;
  readonly #emptied: () => void;
  readonly #cursors = new Set<Cursor>();
  readonly #window: EventWindow;
  readonly #pages = new Map<number, Promise<EncodedEvent[]>>();
  readonly #leave: () => void;
  /** The newest seq that the bus or the log has shown. */
  #seen = 0;
  #tickets = 0;
  #queue: EncodedEvent[] = [];
  #isPumping = false;
  #overflowed = false;
  #isClosed = false;

  constructor(world: string, ports: HubPorts, bounds: Bounds, emptied: () => void) {
    this.#world = world;
    this.#ports = ports;
    this.#bounds = bounds;
    this.#emptied = emptied;
    this.#window = new EventWindow(bounds.windowEvents, bounds.windowBytes);
    this.#leave = ports.bus.subscribe(world, (event) => this.#heard(event));
  }

  get size(): number {
    return this.#cursors.size;
  }

  add(chat: string | undefined, sink: Sink): Cursor {
    const cursor: Cursor = { chat, sink, seq: 0, mode: 'starting', joined: 0, missed: false };
    this.#cursors.add(cursor);
    return cursor;
  }

  /** `head` was read after the cursor was added, so that nothing can fall between the two. */
  start(cursor: Cursor, head: number, after: number | undefined): void {
    if (cursor.mode !== 'starting') return;
    this.#seen = Math.max(this.#seen, head);
    const resync = after !== undefined && after > this.#seen;
    cursor.seq = resync || after === undefined ? this.#seen : after;
    cursor.sink.opened({ seq: cursor.seq, resync });
    this.#read(cursor);
  }

  remove(cursor: Cursor): void {
    cursor.mode = 'closed';
    if (this.#cursors.delete(cursor) && this.#cursors.size === 0) this.close();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const cursor of this.#cursors) cursor.mode = 'closed';
    this.#cursors.clear();
    this.#queue = [];
    this.#leave();
    this.#emptied();
  }

  async sweep(): Promise<void> {
    try {
      const head = await this.#ports.events.head(this.#world);
      if (head === null) {
        this.#end(null);
        return;
      }
      this.#seen = Math.max(this.#seen, head);
      this.#wakeLagging();
    } catch (error) {
      this.#ports.log.warn({ world: this.#world, err: error }, 'could not read the head of the log');
    }
  }

  #heard(event: WorldEvent): void {
    const encoded = new EncodedEvent(event, ++this.#tickets);
    if (isStored(event)) {
      if (event.seq <= this.#seen) return;
      this.#seen = event.seq;
      this.#window.push(encoded);
      if (event.type === 'world.deleted') {
        this.#end(encoded);
        return;
      }
    }
    if (!this.#isPumping && this.#cursors.size <= this.#bounds.sliceClients) {
      for (const cursor of this.#cursors) this.#deliver(cursor, encoded);
      return;
    }
    if (this.#queue.length >= this.#bounds.queuedEvents) {
      this.#queue = [];
      this.#overflowed = true;
    }
    this.#queue.push(encoded);
    if (!this.#isPumping) this.#background(this.#pump());
  }

  /** Writes to many clients in slices, all that waits at once to each, so that other work is not held up. */
  async #pump(): Promise<void> {
    this.#isPumping = true;
    while (this.#queue.length > 0) {
      const batch = this.#queue;
      this.#queue = [];
      let written = 0;
      for (const cursor of this.#cursors) {
        if (batch.length > 1) cursor.sink.cork();
        for (const encoded of batch) this.#deliver(cursor, encoded);
        if (batch.length > 1) cursor.sink.uncork();
        written += 1;
        if (written % this.#bounds.sliceClients === 0) await nextTick();
      }
    }
    this.#isPumping = false;
    if (!this.#overflowed) return;
    this.#overflowed = false;
    for (const cursor of this.#cursors) cursor.missed = true;
    this.#wakeLagging();
  }

  #deliver(cursor: Cursor, encoded: EncodedEvent): void {
    if (cursor.mode !== 'live') return;
    const { event } = encoded;
    if (!isStored(event)) {
      this.#deliverLive(cursor, encoded);
    } else if (event.seq > cursor.seq + 1 || (event.seq > cursor.seq && cursor.sink.isCongested())) {
      this.#read(cursor);
    } else if (event.seq > cursor.seq) {
      cursor.seq = event.seq;
      if (passes(cursor, event)) cursor.sink.write(encoded);
    }
  }

  #deliverLive(cursor: Cursor, encoded: EncodedEvent): void {
    if (encoded.ticket <= cursor.joined || !passes(cursor, encoded.event)) return;
    if (cursor.sink.isCongested()) {
      cursor.missed = true;
      return;
    }
    if (cursor.missed) {
      this.#tellSoFar(cursor);
      if (encoded.event.type !== 'turn.retrying') return;
    }
    cursor.sink.write(encoded);
  }

  /** The text of running turns so far; live events that are still queued are part of it. */
  #tellSoFar(cursor: Cursor): void {
    cursor.missed = false;
    cursor.joined = this.#tickets;
    const texts = this.#ports.liveText(this.#world, cursor.chat);
    for (const event of snapshotOf(this.#world, texts)) {
      if (cursor.sink.isCongested()) {
        cursor.missed = true;
        return;
      }
      cursor.sink.write(new EncodedEvent(event, this.#tickets));
    }
  }

  #read(cursor: Cursor): void {
    if (cursor.mode === 'closed' || cursor.mode === 'reading') return;
    cursor.mode = 'reading';
    if (cursor.seq >= this.#seen && !cursor.sink.isCongested()) this.#goLive(cursor);
    else this.#background(this.#follow(cursor));
  }

  #goLive(cursor: Cursor): void {
    cursor.mode = 'live';
    this.#tellSoFar(cursor);
  }

  async #follow(cursor: Cursor): Promise<void> {
    const isOpen = (): boolean => cursor.mode === 'reading';
    try {
      while (isOpen()) {
        if (cursor.sink.isCongested() && !(await cursor.sink.drained())) {
          this.remove(cursor);
          return;
        }
        const events = this.#window.after(cursor.seq) ?? (await this.#page(cursor.seq));
        if (!isOpen()) return;
        const done = this.#catchUp(cursor, events);
        if (events.length === 0 || (done && cursor.seq >= this.#seen)) {
          this.#goLive(cursor);
          return;
        }
        // The log may answer without ever leaving this thread; sockets must get their turn.
        await nextTick();
      }
    } catch (error) {
      this.#ports.log.error({ world: this.#world, err: error }, 'could not read the log for a client');
      if (!isOpen()) return;
      this.remove(cursor);
      cursor.sink.ended('failed');
    }
  }

  /** False when the client is too slow for more; what it has not got is read again. */
  #catchUp(cursor: Cursor, events: readonly EncodedEvent[]): boolean {
    cursor.sink.cork();
    try {
      for (const encoded of events) {
        const { event } = encoded;
        if (!isStored(event) || event.seq <= cursor.seq) continue;
        if (event.seq !== cursor.seq + 1) {
          // What lay between was pruned: the client must load the state anew.
          cursor.seq = this.#seen;
          cursor.sink.opened({ seq: cursor.seq, resync: true });
          return true;
        }
        cursor.seq = event.seq;
        if (passes(cursor, event)) cursor.sink.write(encoded);
        if (cursor.sink.isCongested()) return false;
      }
      return true;
    } finally {
      cursor.sink.uncork();
    }
  }

  /** Clients at the same place share one read. */
  #page(after: number): Promise<EncodedEvent[]> {
    const known = this.#pages.get(after);
    if (known !== undefined) return known;
    const encode = (events: StoredEvent[]) => events.map((event) => new EncodedEvent(event, 0));
    const page = this.#ports.events
      .read(this.#world, after, this.#bounds.pageEvents)
      .then(encode)
      .finally(() => this.#pages.delete(after));
    this.#pages.set(after, page);
    return page;
  }

  #wakeLagging(): void {
    for (const cursor of this.#cursors) {
      if (cursor.mode === 'live' && cursor.seq < this.#seen) this.#read(cursor);
    }
  }

  /** The world is gone, and its log with it. */
  #end(last: EncodedEvent | null): void {
    for (const cursor of [...this.#cursors]) {
      const { sink } = cursor;
      if (last !== null && cursor.mode !== 'starting') sink.write(last);
      sink.ended('deleted');
    }
    this.close();
  }

  #background(work: Promise<void>): void {
    work.catch((error: unknown) => {
      this.#ports.log.error({ world: this.#world, err: error }, 'delivery of events failed');
    });
  }
}
