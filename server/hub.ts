import type { LiveText } from '../core/parley.ts';
import type { Bus, EventLog, Log } from '../core/ports.ts';
import { AppError } from '../core/protocol/errors.ts';
import type { Bounds } from './bounds.ts';
import { Channel } from './channel.ts';
import type { Cursor, Sink } from './cursor.ts';

export interface HubPorts {
  bus: Bus;
  events: EventLog;
  liveText(world: string, chat?: string): readonly LiveText[];
  log: Log;
}

export interface Subscription {
  close(): void;
}

export interface Hub {
  /**
   * Delivers every stored event after `after` (by default: from now on) once and in order, then live ones. Calls
   * `sink.opened` before the first. Throws AppError `not_found` for a world that does not exist.
   */
  subscribe(
    to: { world: string; chat?: string | undefined; after?: number | undefined },
    sink: Sink,
  ): Promise<Subscription>;
  /** Looks into the log of each world that has listeners: an event that the bus has lost is late, never missing. */
  sweep(): Promise<void>;
  /** For tests and figures. */
  size(): { channels: number; cursors: number };
  close(): void;
}

/** Clients are cursors over the log; one bus subscription per world that has any. */
export function openHub(ports: HubPorts, bounds: Bounds): Hub {
  const channels = new Map<string, Channel>();

  function join(world: string): Channel {
    let channel = channels.get(world);
    if (channel === undefined) {
      channel = new Channel(world, ports, bounds, () => channels.delete(world));
      channels.set(world, channel);
    }
    return channel;
  }

  return {
    async subscribe({ world, chat, after }, sink) {
      const channel = join(world);
      const cursor: Cursor = channel.add(chat, sink);
      try {
        const head = await ports.events.head(world);
        if (head === null) throw new AppError('not_found', `There is no world ${JSON.stringify(world)}`);
        channel.start(cursor, head, after);
      } catch (error) {
        channel.remove(cursor);
        throw error;
      }
      return { close: () => channel.remove(cursor) };
    },
    async sweep() {
      for (const channel of [...channels.values()]) await channel.sweep();
    },
    size: () => ({
      channels: channels.size,
      cursors: [...channels.values()].reduce((sum, channel) => sum + channel.size, 0),
    }),
    close() {
      for (const channel of [...channels.values()]) channel.close();
    },
  };
}
