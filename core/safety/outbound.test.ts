import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { manualTimers } from '../../tests/support/manual-timers.ts';
import { type Outbound, openOutbound } from './outbound.ts';

let server: Server;
let origin: string;
let sockets = 0;
beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url === '/redirect') response.writeHead(307, { location: 'http://elsewhere.test/x' }).end();
    else if (request.url === '/big') response.end('x'.repeat(5000));
    else if (request.url === '/empty') response.writeHead(204).end();
    else response.end('fine');
  });
  server.on('connection', () => {
    sockets += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const timers = manualTimers();
const outbound = (over: { origin?: string } = {}): Outbound =>
  openOutbound({ origin, maxBytes: 1000, firstByteTimeoutMs: 10, idleTimeoutMs: 5, after: timers.after, ...over });

test.each(['http://elsewhere.test/', 'http://127.0.0.1:1/', 'file:///etc/passwd', 'http://169.254.169.254/latest'])(
  'refuses %s before any connection',
  async (url) => {
    const before = sockets;
    await expect(outbound().fetch(url)).rejects.toMatchObject({ kind: 'address' });
    expect(sockets).toBe(before);
  },
);

test('does not follow a redirect and names its host', async () => {
  await expect(outbound().fetch(`${origin}/redirect`)).rejects.toMatchObject({
    kind: 'redirect',
    message: expect.stringContaining('http://elsewhere.test'),
  });
});

test('cuts a body that is too large', async () => {
  const response = await outbound().fetch(`${origin}/big`);
  await expect(response.text()).rejects.toMatchObject({ kind: 'size' });
});

test('hands bodies through, also an empty one, keeps the connection and leaves no timer', async () => {
  const before = sockets;
  for (let n = 0; n < 3; n += 1) expect(await (await outbound().fetch(`${origin}/`)).text()).toBe('fine');
  expect((await outbound().fetch(`${origin}/empty`)).status).toBe(204);
  expect(sockets - before).toBeLessThan(3);
  expect(timers.pending()).toEqual([]);
});
