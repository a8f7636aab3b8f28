import type { Parley } from '../core/parley.ts';
import { BOUNDS, type Bounds } from './bounds.ts';
import { type Connections, openConnections } from './connections.ts';
import { type Hub, openHub } from './hub.ts';

/** All that outlives a single request: who listens, and the word that the server closes. */
export interface Live {
  readonly hub: Hub;
  readonly connections: Connections;
  readonly bounds: Bounds;
  /** Aborts when the server begins to close. */
  readonly closing: AbortSignal;
  close(): void;
}

export function openLive(parley: Parley, bounds: Bounds = BOUNDS): Live {
  const { bus, events, log } = parley;
  const hub = openHub({ bus, events, log, liveText: (world, chat) => parley.liveText(world, chat) }, bounds);
  const isGood = async (token: string) => (await parley.authenticate(token)) !== null;
  const connections = openConnections(bounds.connections, isGood, log);
  const stop = new AbortController();
  const beat = setInterval(() => {
    Promise.all([connections.beat(), hub.sweep()]).catch((error: unknown) => {
      log.error({ err: error }, 'a heartbeat failed');
    });
  }, bounds.heartbeatMs);
  // An application used in process must not be kept alive by it.
  beat.unref();
  return {
    hub,
    connections,
    bounds,
    closing: stop.signal,
    close() {
      clearInterval(beat);
      stop.abort();
      connections.closeAll();
      hub.close();
    },
  };
}
