import type { Address, Exit, Launcher, ServerProcess } from './server-process.ts';

/** How long a client may wait for the next server, or a broken connection for its server's end. */
const PATIENCE_MS = 30_000;

/** A running server as a client sees it: an address, and the moment when it is gone. */
export interface Instance extends Address {
  gone: Promise<unknown>;
}

/** One data directory over the lives of many servers. Clients ask it where the server is now. */
export interface Site {
  readonly data: string;
  /** Starts a server and resolves when it listens. */
  start(): Promise<Instance>;
  /** Starts one that may be killed before it listens. */
  begin(): ServerProcess;
  /** Where the server listens now, or as soon as there is one. */
  up(): Promise<Instance>;
  kill(): Promise<Exit>;
  terminate(): Promise<Exit>;
  /** How often it was terminated: each gives a running turn an execution that is no crash. */
  terminations(): number;
  /** The pid of the server that was started last. */
  pid(): number;
}

export function openSite(launcher: Launcher, data = launcher.folder()): Site {
  let current: ServerProcess | null = null;
  let instance: Instance | null = null;
  let waiting: ((instance: Instance) => void)[] = [];
  let terminations = 0;

  function begin(): ServerProcess {
    const server = launcher.start(data);
    current = server;
    server.ready.then(
      (address) => {
        if (current !== server || server.hasEnded()) return;
        instance = { ...address, gone: server.ended };
        const resolvers = waiting;
        waiting = [];
        for (const resolve of resolvers) resolve(instance);
      },
      () => {}, // killed while it booted; who started it knows
    );
    return server;
  }
  async function end(name: 'SIGKILL' | 'SIGTERM'): Promise<Exit> {
    if (!current) throw new Error('no server was started');
    instance = null;
    return current.signal(name);
  }

  const site: Site = {
    data,
    begin,
    async start() {
      await begin().ready;
      return site.up();
    },
    up() {
      if (instance) return Promise.resolve(instance);
      const next = new Promise<Instance>((resolve) => waiting.push(resolve));
      return within(next, 'no server came up');
    },
    kill: () => end('SIGKILL'),
    terminate: () => {
      terminations++;
      return end('SIGTERM');
    },
    terminations: () => terminations,
    pid() {
      if (!current) throw new Error('no server was started');
      return current.pid;
    },
  };
  return site;
}

/** Rejects where something that must come does not. */
export async function within<T>(work: Promise<T>, what: string, ms = PATIENCE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
