import { createParser } from 'eventsource-parser';
import { WebSocket } from 'ws';
import type { StoredEvent, WorldEvent } from '../../core/protocol/events.ts';
import { type Instance, type Site, within } from './site.ts';

/** A client that follows a world over many servers and keeps each stored event as it came. */
export interface Follower {
  readonly name: string;
  readonly world: string;
  readonly chat: string | undefined;
  readonly events: StoredEvent[];
  /** What no server may do, such as a `resync` for a cursor that is in the log. */
  readonly faults: string[];
  connections(): number;
  /** Resolves with the next event, stored or live, that comes from now on and fits. */
  next(fits: (event: WorldEvent) => boolean): Promise<WorldEvent>;
  /** Resolves when this stored event has come. */
  reached(seq: number): Promise<void>;
  stop(): Promise<void>;
}

interface Sink {
  after(): number;
  take(event: WorldEvent): void;
  fault(what: string): void;
}

/** Reads one connection to its end; resolves when it has ended. */
type Connect = (instance: Instance, sink: Sink, signal: AbortSignal) => Promise<void>;

function follow(site: Site, name: string, world: string, chat: string | undefined, connect: Connect): Follower {
  const events: StoredEvent[] = [];
  const faults: string[] = [];
  const watchers = new Set<(event: WorldEvent) => void>();
  const stopping = new AbortController();
  let connections = 0;
  const sink: Sink = {
    after: () => events.at(-1)?.seq ?? 0,
    take(event) {
      if ('seq' in event) events.push(event);
      for (const watch of watchers) watch(event);
    },
    fault: (what) => faults.push(`${name}: ${what}`),
  };

  async function loop(): Promise<void> {
    const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener('abort', () => resolve()));
    while (!stopping.signal.aborted) {
      const instance = await Promise.race([site.up(), stopped]);
      if (!instance || stopping.signal.aborted) return;
      connections += 1;
      await connect(instance, sink, stopping.signal);
      if (stopping.signal.aborted) return;
      await Promise.race([within(instance.gone, `${name} was cut off, and the server did not end`), stopped]);
    }
  }
  const done = loop().catch((error: unknown) => {
    sink.fault(String(error));
  });

  const next = (fits: (event: WorldEvent) => boolean): Promise<WorldEvent> =>
    new Promise((resolve) => {
      const watch = (event: WorldEvent) => {
        if (!fits(event)) return;
        watchers.delete(watch);
        resolve(event);
      };
      watchers.add(watch);
    });
  return {
    name,
    world,
    chat,
    events,
    faults,
    connections: () => connections,
    next,
    async reached(seq) {
      if (sink.after() >= seq) return;
      await within(
        next((event) => 'seq' in event && event.seq >= seq),
        `${name} did not hear of event ${seq}`,
      );
    },
    async stop() {
      stopping.abort();
      await done;
    },
  };
}

/** Follows over a WebSocket with an `after` cursor. */
export function followSocket(site: Site, name: string, world: string, chat?: string): Follower {
  return follow(site, name, world, chat, ({ url, token }, sink, signal) => {
    const ws = new WebSocket(`${url.replace('http', 'ws')}/ws`, ['parley.v1', `bearer.${token}`]);
    const leave = () => ws.terminate();
    signal.addEventListener('abort', leave);
    ws.on('open', () => {
      ws.send(
        JSON.stringify({ type: 'subscribe', world, after: sink.after(), ...(chat === undefined ? {} : { chat }) }),
      );
    });
    ws.on('message', (bytes) => {
      const frame = JSON.parse(String(bytes)) as { type: string };
      if (frame.type === 'subscribed') return;
      if (frame.type === 'resync' || frame.type === 'error') sink.fault(`after ${sink.after()}: ${String(bytes)}`);
      else sink.take(frame as WorldEvent);
    });
    ws.on('error', () => {}); // a close follows
    return new Promise((resolve) => {
      ws.on('close', () => {
        signal.removeEventListener('abort', leave);
        resolve();
      });
    });
  });
}

/** Follows over server-sent events with `Last-Event-ID`. */
export function followStream(site: Site, name: string, world: string): Follower {
  return follow(site, name, world, undefined, async ({ url, token }, sink, signal) => {
    const parser = createParser({
      onEvent({ event, data, id }) {
        if (event === 'resync') return sink.fault(`after ${sink.after()}: resync`);
        const parsed = JSON.parse(data) as WorldEvent;
        if ('seq' in parsed && id !== String(parsed.seq)) sink.fault(`event ${parsed.seq} has the id ${id}`);
        sink.take(parsed);
      },
    });
    const text = new TextDecoder();
    try {
      const response = await fetch(`${url}/api/v1/worlds/${world}/events/stream`, {
        headers: { authorization: `Bearer ${token}`, 'last-event-id': String(sink.after()) },
        signal,
      });
      if (response.status === 503 || response.status === 423) return;
      if (response.status !== 200) return sink.fault(`the stream answered ${response.status}`);
      for await (const bytes of response.body ?? []) parser.feed(text.decode(bytes, { stream: true }));
    } catch {
      // The connection broke; what had come whole was taken.
    }
  });
}
