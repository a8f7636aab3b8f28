import { once } from 'node:events';
import type { Server } from 'node:http';
import { createAdaptorServer } from '@hono/node-server';
import type { Parley } from '../core/parley.ts';
import { AppError } from '../core/protocol/errors.ts';
import { createApp } from './app.ts';
import { BOUNDS, type Bounds } from './bounds.ts';
import { openLive } from './live.ts';
import { attachSockets } from './socket.ts';

export interface ListenOptions {
  parley: Parley;
  host: string;
  /** 0 picks a free one. */
  port: number;
  auth: boolean;
  allowedHosts: readonly string[];
  /** Named to a person on this machine who has no token yet. */
  tokenFile: string;
  /** Where the built page lies; null where there is none. */
  webDir: string | null;
  bounds?: Partial<Bounds>;
}

export interface RunningServer {
  url: string;
  port: number;
  /** Open sockets and event streams. */
  connections(): number;
  /** Closes sockets with 1001, lets open requests finish, and is done within 5 s. Idempotent. */
  close(): Promise<void>;
}

/** Listens for HTTP and sockets. Throws AppError `busy` for a used port, `forbidden` or `invalid` for one that cannot be had. */
export async function startServer(options: ListenOptions): Promise<RunningServer> {
  const { parley, host } = options;
  const bounds: Bounds = { ...BOUNDS, ...options.bounds };
  const live = openLive(parley, bounds);
  let port = options.port;
  const guards = { ...options, port: () => port };
  const app = createApp(parley, { ...guards, live });
  const server = createAdaptorServer({
    fetch: app.fetch,
    // A request without a Host header gets this one, which the guard refuses in our own error shape.
    hostname: 'missing.invalid',
    serverOptions: { requireHostHeader: false, maxHeaderSize: 32 * 1024 },
  }) as Server;
  attachSockets(server, { parley, live, options: guards });
  try {
    port = await listen(server, host, options.port);
  } catch (error) {
    live.close();
    throw error;
  }
  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    const ended = once(server, 'close');
    server.close();
    live.close();
    server.closeIdleConnections();
    const force = setTimeout(() => server.closeAllConnections(), bounds.closeGraceMs);
    // Keep-alive connections become idle only after their answer.
    const idle = setInterval(() => server.closeIdleConnections(), 50);
    await ended;
    clearTimeout(force);
    clearInterval(idle);
  };
  return {
    url: urlOf(host, port),
    port,
    connections: () => live.connections.size(),
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}

/** An address that a browser on this machine can open and that the Host rule accepts. */
function urlOf(host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

async function listen(server: Server, host: string, port: number): Promise<number> {
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    throw explained(error, host, port);
  }
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : port;
}

function explained(error: unknown, host: string, port: number): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const options = error instanceof Error ? { cause: error } : undefined;
  switch (code) {
    case 'EADDRINUSE':
      return new AppError(
        'busy',
        `Port ${port} on ${host} is in use; choose another with --port or PARLEY_PORT (0 picks a free one)`,
        { port },
        options,
      );
    case 'EACCES':
      return new AppError(
        'forbidden',
        `Port ${port} may not be used by this account; choose one above 1023 with --port`,
        { port },
        options,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new AppError(
        'invalid',
        `${host} is not an address of this machine; set --host or PARLEY_HOST`,
        { host },
        options,
      );
    default:
      return error;
  }
}
