import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type RawData, type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import type { Actor, Parley } from '../core/parley.ts';
import { AppError } from '../core/protocol/errors.ts';
import { SUBPROTOCOL } from '../core/protocol/frames.ts';
import { tokenOf, tokenOfProtocols } from './access.ts';
import { toAppError } from './failure.ts';
import { authenticate, type GuardOptions, guardUpgrade } from './guards.ts';
import type { Live } from './live.ts';
import { CLOSE, SocketClient } from './socket-client.ts';
import { handleFrame } from './socket-frames.ts';

interface SocketDependencies {
  parley: Parley;
  live: Live;
  options: GuardOptions;
}

interface Caller {
  actor: Actor;
  token: string | null;
}

/** Takes over the server's upgrades: `/ws` with the subprotocol `parley.v1`; anything else is refused as HTTP. */
export function attachSockets(server: Server, dependencies: SocketDependencies): void {
  const { live, parley } = dependencies;
  const options: ServerOptions & { closeTimeout: number } = {
    noServer: true,
    clientTracking: false,
    // Compression costs seven times the processor time and 180 KB per client.
    perMessageDeflate: false,
    maxPayload: live.bounds.frameBytes,
    // The pair's other half is the token and must not be sent back.
    handleProtocols: () => SUBPROTOCOL,
    closeTimeout: 2_000,
  };
  const sockets = new WebSocketServer(options);
  server.on('upgrade', (request: IncomingMessage, raw: Duplex, head: Buffer) => {
    // Until `ws` has it, nobody else would hear of a broken connection.
    const ignore = (): void => {};
    raw.on('error', ignore);
    admit(request, dependencies).then(
      (caller) => {
        raw.off('error', ignore);
        if (raw.destroyed) return;
        sockets.handleUpgrade(request, raw, head, (ws) => serve(ws, raw, caller, dependencies));
      },
      (thrown: unknown) => refuse(raw, toAppError(thrown, parley.log, { over: 'upgrade' })),
    );
  });
}

/** Host and Origin first, then the path, then the token. */
async function admit(request: IncomingMessage, { parley, live, options }: SocketDependencies): Promise<Caller> {
  const { headers } = request;
  const kind = guardUpgrade(options, headers);
  const path = (request.url ?? '').split('?')[0] ?? '';
  if (path !== '/ws') throw new AppError('not_found', `There is no socket at ${path.slice(0, 200)}`);
  const offered = tokenOfProtocols(headers['sec-websocket-protocol']);
  const token = offered ?? tokenOf({ authorization: headers.authorization, cookie: headers.cookie });
  const actor = await authenticate(parley, options, token, kind === 'loopback');
  if (live.closing.aborted) throw new AppError('busy', 'The server is closing');
  if (live.connections.size() >= live.bounds.connections) {
    throw new AppError('too_many', 'The server takes no more connections; try again later');
  }
  return { actor, token: options.auth ? token : null };
}

function refuse(raw: Duplex, error: AppError): void {
  const body = JSON.stringify(error.toBody());
  raw.end(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? 'Refused'}\r\nConnection: close\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

function serve(ws: WebSocket, raw: Duplex, caller: Caller, { parley, live, options }: SocketDependencies): void {
  const { bounds } = live;
  const client = new SocketClient(ws, raw, bounds);
  const allowance = frameAllowance(bounds.framesPerSecond, bounds.frameBurst, () => performance.now());
  let isAlive = true;
  let isPingDue = false;
  let pending = 0;
  let tail = Promise.resolve();

  const actor = async (): Promise<Actor> => {
    try {
      return await authenticate(parley, options, caller.token, false);
    } catch (error) {
      if (error instanceof AppError && error.code === 'unauthorized') client.close(CLOSE.unauthorized, 'token revoked');
      throw error;
    }
  };
  const leave = live.connections.add({
    tokenId: caller.actor.tokenId,
    token: caller.token,
    beat() {
      isPingDue = !isPingDue;
      if (!isPingDue) return;
      if (!isAlive) return ws.terminate();
      isAlive = false;
      ws.ping();
    },
    close: (reason) =>
      reason === 'revoked'
        ? client.close(CLOSE.unauthorized, 'token revoked')
        : client.close(CLOSE.shutdown, 'the server is closing'),
  });

  ws.on('pong', () => {
    isAlive = true;
  });
  ws.on('error', (error) => parley.log.debug({ err: error }, 'a socket failed'));
  ws.on('close', () => {
    leave();
    client.dropSubscriptions();
  });
  ws.on('message', (bytes: RawData, isBinary: boolean) => {
    isAlive = true;
    if (isBinary) return client.send({ type: 'error', error: 'invalid', message: 'Frames are JSON text, not binary' });
    if (!allowance()) {
      return client.send({ type: 'error', error: 'too_many', message: 'Too many frames; slow down' });
    }
    pending += 1;
    if (pending >= bounds.pendingFrames) ws.pause();
    const text = bytes.toString();
    // One after the other: what a client sends is done in its order.
    tail = tail
      .then(() => handleFrame({ parley, live, client, actor }, text))
      .catch((error: unknown) => parley.log.error({ err: error }, 'a frame failed'))
      .finally(() => {
        pending -= 1;
        if (ws.isPaused && pending < bounds.pendingFrames) ws.resume();
      });
  });
}

/** A token bucket: `burst` at once, `perSecond` on and on. */
export function frameAllowance(perSecond: number, burst: number, now: () => number): () => boolean {
  let left = burst;
  let last = now();
  return () => {
    const time = now();
    left = Math.min(burst, left + ((time - last) / 1000) * perSecond);
    last = time;
    if (left < 1) return false;
    left -= 1;
    return true;
  };
}
