import { Writable } from 'node:stream';
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { BOUNDS } from './bounds.ts';
import { textFrame } from './encoded.ts';
import { openHub } from './hub.ts';
import { SocketClient, SocketSink } from './socket-client.ts';
import { memoryLog, silentLog } from './testing/memory-log.ts';

/** A connection whose other end takes nothing until it is told to. */
function blockedConnection() {
  let release: () => void = () => {};
  const raw = new Writable({
    write(_chunk, _encoding, done) {
      release = done;
    },
  });
  const closed: number[] = [];
  const ws = {
    readyState: WebSocket.OPEN as 0 | 1 | 2 | 3,
    close(code?: number) {
      ws.readyState = WebSocket.CLOSING;
      closed.push(code ?? 0);
    },
  };
  return { raw, ws, closed, release: () => release() };
}

const duplex = (raw: Writable) => raw as unknown as ConstructorParameters<typeof SocketClient>[1];

it('a client that reads nothing holds no more than the soft bound and one event', async () => {
  const log = memoryLog();
  const hub = openHub({ ...log, liveText: () => log.live, log: silentLog }, BOUNDS);
  const { raw, ws, closed } = blockedConnection();
  const client = new SocketClient(ws, duplex(raw), BOUNDS);
  await hub.subscribe({ world: 'w' }, new SocketSink(client, 'w', () => {}));
  for (let n = 0; n < 500; n += 1) {
    log.append('c', true, 5_000);
    log.delta('c', 'x'.repeat(1_000));
    if (n % 50 === 0) await nextTick();
  }
  expect(raw.writableLength).toBeGreaterThan(BOUNDS.softBufferBytes);
  expect(raw.writableLength).toBeLessThan(BOUNDS.softBufferBytes + 20_000);
  expect(closed).toEqual([]);
  hub.close();
  raw.destroy();
});

it('a client is cut off above the hard bound, with a code that says why', () => {
  const { raw, ws, closed } = blockedConnection();
  const client = new SocketClient(ws, duplex(raw), { ...BOUNDS, hardBufferBytes: 1_000 });
  for (let n = 0; n < 5; n += 1) client.write(textFrame('x'.repeat(600)));
  expect(closed).toEqual([4008]);
  expect(raw.writableLength).toBeLessThan(2_000);
  raw.destroy();
});

it('a client that takes too long to read is cut off', async () => {
  const { raw, ws, closed } = blockedConnection();
  const client = new SocketClient(ws, duplex(raw), { ...BOUNDS, softBufferBytes: 20_000, stallMs: 5 });
  client.write(textFrame('x'.repeat(30_000)));
  await expect(client.drained()).resolves.toBe(false);
  expect(closed).toEqual([4008]);
  raw.destroy();
});

it('a client that reads again goes on', async () => {
  const { raw, ws, closed, release } = blockedConnection();
  const client = new SocketClient(ws, duplex(raw), { ...BOUNDS, softBufferBytes: 20_000 });
  client.write(textFrame('x'.repeat(30_000)));
  const drained = client.drained();
  release();
  await expect(drained).resolves.toBe(true);
  expect(closed).toEqual([]);
  raw.destroy();
});
