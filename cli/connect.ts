import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, loadConfig } from '../core/config.ts';
import { systemClock } from '../core/machine.ts';
import type { Log } from '../core/ports.ts';
import { openOutbound } from '../core/safety/outbound.ts';
import type { Connection } from './client.ts';
import { CommandError, ExitCode } from './io.ts';
import { isAlive, readServerFile } from './server-file.ts';

export interface ConnectFlags {
  data?: string | undefined;
  server?: string | undefined;
  token?: string | undefined;
}

/** A stream of a long chat has no end; what bounds it is the person who watches. */
const MAX_BYTES = Number.MAX_SAFE_INTEGER;
const FIRST_BYTE_MS = 60_000;
/** The server sends a heartbeat far more often than this. */
const IDLE_MS = 120_000;
const HEALTH_MS = 2_000;

/** A server at `url`. Redirects and other hosts are refused, so that the token stays with it. */
export function networkConnection(url: string, token: string | null): Connection {
  const { origin } = new URL(url);
  return {
    url: origin,
    request(path, init) {
      const outbound = openOutbound({
        origin,
        maxBytes: MAX_BYTES,
        firstByteTimeoutMs: FIRST_BYTE_MS,
        idleTimeoutMs: IDLE_MS,
        after: systemClock.after,
      });
      const headers = new Headers(init.headers);
      if (token !== null) headers.set('authorization', `Bearer ${token}`);
      return outbound.fetch(`${origin}${path}`, { ...init, headers });
    },
    close: async () => {},
  };
}

/** The server that runs on this data directory, if its process lives and answers as one. */
export async function findRunningServer(dataDir: string): Promise<{ pid: number; url: string } | null> {
  const record = await readServerFile(dataDir);
  if (record === null || !isAlive(record.pid)) return null;
  try {
    const init = { method: 'GET', signal: AbortSignal.timeout(HEALTH_MS) };
    const response = await networkConnection(record.url, null).request('/health', init);
    await response.body?.cancel();
    return response.ok ? record : null;
  } catch {
    return null; // another program has its process id or port now
  }
}

/** The token that a server on this data directory accepts from its owner. */
export async function readToken(config: Config): Promise<string | null> {
  if (config.token !== null) return config.token;
  try {
    return (await readFile(join(config.dataDir, 'token'), 'utf8')).trim() || null;
  } catch {
    return null; // the server runs without one, or will say that it needs one
  }
}

function serverUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new CommandError(`--server must be an address such as http://127.0.0.1:3000, not ${text}`, ExitCode.usage);
  }
  return url.href;
}

/**
 * The server that was named, else the one that runs on the data directory, else the data directory itself,
 * opened in this process by `openLocal`.
 */
export async function connect(
  flags: ConnectFlags,
  log: Log,
  openLocal: (config: Config, log: Log) => Promise<Connection>,
): Promise<Connection> {
  const config = loadConfig({ data: flags.data });
  if (flags.server !== undefined) return networkConnection(serverUrl(flags.server), flags.token ?? config.token);
  const running = await findRunningServer(config.dataDir);
  if (running !== null) return networkConnection(running.url, flags.token ?? (await readToken(config)));
  return openLocal(config, log);
}
