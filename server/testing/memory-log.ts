import { setImmediate as nextTick } from 'node:timers/promises';
import { memoryBus } from '../../core/bus/memory.ts';
import type { LiveText } from '../../core/parley.ts';
import type { Bus, EventLog, Log } from '../../core/ports.ts';
import { EMPTY_USAGE } from '../../core/protocol/entities.ts';
import { type StoredEvent, StoredEvent as StoredEventSchema, type WorldEvent } from '../../core/protocol/events.ts';
import type { Cursor, Sink } from '../cursor.ts';
import type { EncodedEvent } from '../encoded.ts';

export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** A log of one world in memory, whose bus a test may hold back. */
export interface MemoryLog {
  bus: Bus;
  events: EventLog;
  reads: number;
  live: LiveText[];
  /** Appends an event; `tell` false keeps it from the bus, as a lost message would be. */
  append(chat: string, tell?: boolean, pad?: number): StoredEvent;
  delta(chat: string, text: string): void;
  all(): readonly StoredEvent[];
  /** Ends the world. */
  remove(): void;
}

const AT = '2026-01-01T00:00:00.000Z';

export function memoryLog(world = 'w'): MemoryLog {
  const stored: StoredEvent[] = [];
  const bus = memoryBus();
  let isGone = false;
  const log: MemoryLog = {
    bus,
    reads: 0,
    live: [],
    events: {
      async read(_world, after, limit) {
        log.reads += 1;
        await nextTick();
        return stored.slice(after, after + limit);
      },
      async head(asked) {
        await nextTick();
        return asked === world && !isGone ? stored.length : null;
      },
    },
    append(chat, tell = true, pad = 0) {
      const event = turnEvent(world, chat, stored.length + 1, pad);
      stored.push(event);
      if (tell) bus.publish(event);
      return event;
    },
    delta(chat, text) {
      let run = log.live.find((live) => live.chat === chat);
      if (run === undefined) {
        run = { chat, turnId: `t-${chat}`, agentId: 'a', runId: 'r1', nextIndex: 0, text: '', reasoning: '' };
        log.live.push(run);
      }
      const data = { turnId: run.turnId, agentId: run.agentId, runId: run.runId, index: run.nextIndex, text };
      run.nextIndex += 1;
      run.text += text;
      bus.publish({ type: 'message.delta', world, chat, at: AT, data } as WorldEvent);
    },
    all: () => stored,
    remove() {
      isGone = true;
      bus.publish({ type: 'world.deleted', seq: stored.length + 1, world, at: AT, data: { id: world } } as WorldEvent);
    },
  };
  return log;
}

function turnEvent(world: string, chat: string, seq: number, pad: number): StoredEvent {
  const error = { code: 'x', message: 'é'.repeat(pad) };
  return StoredEventSchema.parse({
    type: 'turn.queued',
    seq,
    world,
    chat,
    at: AT,
    data: {
      turn: {
        ...{ id: `t${seq}`, worldId: world, chatId: chat, agentId: 'a', state: 'queued', attempt: 0, error },
        trigger: { messageId: 'm', seq: 1, reason: 'address' },
        ...{ usage: EMPTY_USAGE, queuedAt: AT, startedAt: null, endedAt: null },
      },
    },
  });
}

/** A client whose speed a test decides. */
export class RecordingSink implements Sink {
  readonly heard: EncodedEvent[] = [];
  opens: { seq: number; resync: boolean }[] = [];
  end: string | undefined;
  isSlow = false;
  #waiting: ((open: boolean) => void)[] = [];

  get seqs(): number[] {
    return this.heard.flatMap(({ event }) => ('seq' in event ? [event.seq] : []));
  }

  get text(): string {
    return this.heard.reduce((text, { event }) => {
      if (event.type !== 'message.delta') return text;
      return event.data.index === 0 ? event.data.text : text + event.data.text;
    }, '');
  }

  setSlow(isSlow: boolean): void {
    this.isSlow = isSlow;
    if (isSlow) return;
    for (const resolve of this.#waiting.splice(0)) resolve(true);
  }

  opened(start: Pick<Cursor, 'seq'> & { resync: boolean }): void {
    this.opens.push(start);
  }
  isCongested(): boolean {
    return this.isSlow;
  }
  drained(): Promise<boolean> {
    return new Promise((resolve) => (this.isSlow ? this.#waiting.push(resolve) : resolve(true)));
  }
  write(event: EncodedEvent): void {
    this.heard.push(event);
  }
  cork(): void {}
  uncork(): void {}
  ended(reason: 'deleted' | 'failed'): void {
    this.end = reason;
  }
}
