import { once } from 'node:events';
import { connect } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { Bounds } from './bounds.ts';
import { type RunningServer, startServer } from './listen.ts';
import { type MemoryLog, memoryLog } from './testing/memory-log.ts';
import { connectUser, openUser, type SocketUser } from './testing/socket-user.ts';
import { type StubParley, stubParley } from './testing/stub-parley.ts';

let running: RunningServer | undefined;
const users: SocketUser[] = [];

afterEach(async () => {
  for (const { ws } of users.splice(0)) ws.terminate();
  await running?.close();
  running = undefined;
});

async function start(bounds: Partial<Bounds> = {}): Promise<{ log: MemoryLog; parley: StubParley; url: string }> {
  const log = memoryLog();
  const parley = stubParley(log);
  const fixed = {
    host: '127.0.0.1',
    port: 0,
    auth: true,
    allowedHosts: [],
    tokenFile: '/somewhere/token',
    webDir: null,
  };
  running = await startServer({ parley, ...fixed, bounds: { closeGraceMs: 500, ...bounds } });
  return { log, parley, url: running.url };
}

async function user(url: string, token: string | null = 'owner-token', headers: Record<string, string> = {}) {
  const opened = await connectUser(url, token, { headers });
  users.push(opened);
  return opened;
}

const seqs = (who: SocketUser) => who.frames.flatMap((f) => (f.type === 'turn.queued' ? [f.seq] : []));
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1);

describe('the upgrade', () => {
  it.each([
    ['no token', null, {}, 401],
    ['a wrong token', 'nobody', {}, 401],
    ['a foreign origin', 'owner-token', { origin: 'http://evil.example' }, 403],
    ['the origin null', 'owner-token', { origin: 'null' }, 403],
    ['a rebound host', 'owner-token', { host: 'evil.example' }, 403],
  ])('with %s is refused as HTTP', async (_name, token, headers, status) => {
    const { url } = await start();
    await expect(connectUser(url, token, { headers })).rejects.toMatchObject({
      status,
      body: { error: expect.any(String) },
    });
  });

  it.each([
    ['the subprotocol pair', 'owner-token', {}],
    ['a bearer header', null, { authorization: 'Bearer owner-token' }],
    ['the session cookie', null, { cookie: 'parley_session=owner-token' }],
  ])('takes the token from %s and never sends it back', async (_name, token, headers) => {
    const { url } = await start();
    const { ws } = await user(url, token, headers);
    expect(ws.protocol).toBe('parley.v1');
  });

  it('takes the page’s own origin', async () => {
    const { url } = await start();
    await expect(user(url, 'owner-token', { origin: url })).resolves.toBeDefined();
  });

  it('works only at its path', async () => {
    const { url } = await start();
    await expect(connectUser(`${url}/x`, 'owner-token')).rejects.toMatchObject({ status: 404 });
  });

  it('is refused over the bound of connections', async () => {
    const { url } = await start({ connections: 1 });
    await user(url);
    await expect(connectUser(url, 'owner-token')).rejects.toMatchObject({ status: 429, body: { error: 'too_many' } });
  });
});

describe('a subscription', () => {
  it('gets the log from its place on, then what happens, each once', async () => {
    const { log, url } = await start();
    for (let n = 0; n < 600; n += 1) log.append('c');
    const ada = await user(url);
    ada.send({ type: 'subscribe', id: 's', world: 'w', after: 0 });
    await ada.until((f) => f.type === 'turn.queued');
    for (let n = 0; n < 50; n += 1) log.append('c');
    await ada.until((f) => f.seq === 650);
    expect(ada.frames[0]).toEqual({ type: 'subscribed', world: 'w', seq: 0 });
    expect(ada.frames.filter((f) => f.type === 'ack')).toEqual([{ type: 'ack', id: 's', ok: true }]);
    expect(seqs(ada)).toEqual(upTo(650));
  });

  it('with a place in the future gets resync', async () => {
    const { url } = await start();
    const ada = await user(url);
    ada.send({ type: 'subscribe', world: 'w', after: 7 });
    expect(await ada.until((f) => f.type === 'resync')).toEqual({ type: 'resync', world: 'w', seq: 0 });
  });

  it('to what does not exist is an error', async () => {
    const { url } = await start();
    const ada = await user(url);
    ada.send({ type: 'subscribe', world: 'nope' });
    expect(await ada.until((f) => f.type === 'error')).toMatchObject({ error: 'not_found' });
    ada.send({ type: 'subscribe', id: 'c', world: 'w', chat: 'none' });
    expect(await ada.until((f) => f.id === 'c')).toMatchObject({ type: 'ack', ok: false, error: 'not_found' });
  });

  it('that is taken back hears nothing more', async () => {
    const { log, url } = await start();
    const ada = await user(url);
    ada.send({ type: 'subscribe', id: '1', world: 'w' });
    ada.send({ type: 'unsubscribe', id: '2', world: 'w' });
    await ada.until((f) => f.id === '2');
    log.append('c');
    ada.send({ type: 'ping' });
    await ada.until((f) => f.type === 'pong');
    expect(seqs(ada)).toEqual([]);
  });

  it('replaces an earlier one of the same world', async () => {
    const { log, url } = await start();
    const ada = await user(url);
    ada.send({ type: 'subscribe', world: 'w' });
    ada.send({ type: 'subscribe', id: '2', world: 'w', chat: 'b' });
    await ada.until((f) => f.id === '2');
    log.append('a');
    log.append('b');
    await ada.until((f) => f.seq === 2);
    expect(seqs(ada)).toEqual([2]);
  });

  it('is refused over the bound', async () => {
    const { url } = await start({ subscriptionsPerSocket: 0 });
    const ada = await user(url);
    ada.send({ type: 'subscribe', id: '1', world: 'w' });
    expect(await ada.until((f) => f.id === '1')).toMatchObject({ ok: false, error: 'too_many' });
  });

  it('carries frames of every length class whole, beside answers', async () => {
    const { log, url } = await start();
    const ada = await user(url);
    ada.send({ type: 'subscribe', id: '1', world: 'w' });
    await ada.until((f) => f.id === '1');
    for (const pad of [0, 40, 60_000, 0]) {
      log.append('c', true, pad);
      ada.send({ type: 'ping' });
    }
    await ada.until((f) => f.seq === 4);
    expect(seqs(ada)).toEqual([1, 2, 3, 4]);
  });
});

describe('a frame', () => {
  it.each([
    ['no JSON', '{"type":', 'invalid_json'],
    ['an unknown type', { type: 'dance' }, 'invalid'],
    ['an unknown field', { type: 'ping', x: 1 }, 'invalid'],
    ['a list', [], 'invalid'],
    ['null', 'null', 'invalid'],
    ['an answer, which comes later', { type: 'answer', world: 'w' }, 'invalid'],
  ])('that is %s gets an error and the socket lives', async (_name, frame, error) => {
    const { url } = await start();
    const ada = await user(url);
    ada.send(frame);
    expect(await ada.until((f) => f.type === 'error')).toMatchObject({ error, message: expect.any(String) });
    ada.send({ type: 'ping' });
    await ada.until((f) => f.type === 'pong');
  });

  it('that is binary gets an error', async () => {
    const { url } = await start();
    const ada = await user(url);
    ada.ws.send(Buffer.from('{"type":"ping"}'));
    expect(await ada.until((f) => f.type === 'error')).toMatchObject({ error: 'invalid' });
  });

  it('over the bound of bytes ends the socket', async () => {
    const { url } = await start({ frameBytes: 1000 });
    const ada = await user(url);
    ada.send('x'.repeat(1001));
    expect(await ada.closed).toBe(1009);
  });

  it('comes too often: too_many', async () => {
    const { url } = await start({ framesPerSecond: 0.001, frameBurst: 2 });
    const ada = await user(url);
    for (let n = 0; n < 3; n += 1) ada.send({ type: 'ping' });
    expect(await ada.until((f) => f.type === 'error')).toMatchObject({ error: 'too_many' });
  });

  it('posts as the token’s person, with its id as key, in the order sent', async () => {
    const { parley, url } = await start();
    const ada = await user(url);
    for (const id of ['1', '2', '3']) ada.send({ type: 'message', id, world: 'w', chat: 'c', content: `hello ${id}` });
    expect(await ada.until((f) => f.id === '3')).toMatchObject({ type: 'ack', ok: true, turns: [] });
    expect(parley.posts.map((p) => [p.actor.name, p.content, p.idem?.key])).toEqual([
      ['Ada', 'hello 1', '1'],
      ['Ada', 'hello 2', '2'],
      ['Ada', 'hello 3', '3'],
    ]);
  });

  it('among hundreds sent at once is done in its turn', async () => {
    const { parley, url } = await start({ frameBurst: 1_000, pendingFrames: 4 });
    const ada = await user(url);
    for (const n of upTo(500)) ada.send({ type: 'message', id: `${n}`, world: 'w', chat: 'c', content: `${n}` });
    await ada.until((f) => f.id === '500');
    expect(parley.posts.map((post) => Number(post.content))).toEqual(upTo(500));
  });

  it('with a message over 256 KB is too_large', async () => {
    const { url } = await start();
    const ada = await user(url);
    ada.send({ type: 'message', id: '1', world: 'w', chat: 'c', content: 'é'.repeat(140_000) });
    expect(await ada.until((f) => f.id === '1')).toMatchObject({ ok: false, error: 'too_large' });
  });

  it('of a viewer posts nothing', async () => {
    const { parley, url } = await start();
    const vic = await user(url, 'viewer-token');
    vic.send({ type: 'message', id: '1', world: 'w', chat: 'c', content: 'hello' });
    expect(await vic.until((f) => f.id === '1')).toMatchObject({ ok: false, error: 'forbidden' });
    expect(parley.posts).toEqual([]);
  });

  it('stops a chat', async () => {
    const { url } = await start();
    const ada = await user(url);
    ada.send({ type: 'stop', id: '1', world: 'w', chat: 'c' });
    expect(await ada.until((f) => f.id === '1')).toEqual({ type: 'ack', id: '1', ok: true, stopped: 2 });
  });
});

describe('the end', () => {
  it('of a token closes its sockets and no others', async () => {
    const { url } = await start();
    const ada = await user(url);
    const vic = await user(url, 'viewer-token');
    const gone = await fetch(`${url}/api/v1/tokens/k2`, {
      method: 'DELETE',
      headers: { authorization: 'Bearer owner-token' },
    });
    expect(gone.status).toBe(204);
    expect(await vic.closed).toBe(4401);
    expect(ada.ws.readyState).toBe(ada.ws.OPEN);
  });

  it('of a token elsewhere is seen at the next frame', async () => {
    const { parley, url } = await start();
    const ada = await user(url);
    parley.people.clear();
    ada.send({ type: 'message', id: '1', world: 'w', chat: 'c', content: 'hello' });
    expect(await ada.closed).toBe(4401);
    expect(parley.posts).toEqual([]);
  });

  it('of a token elsewhere is seen at the next heartbeat', async () => {
    const { parley, url } = await start({ heartbeatMs: 20 });
    const ada = await user(url);
    parley.people.clear();
    expect(await ada.closed).toBe(4401);
  });

  it('of a client that answers no ping comes by itself', async () => {
    const { url } = await start({ heartbeatMs: 20 });
    const ada = await user(url);
    ada.ws.pong = () => {};
    expect(await ada.closed).toBe(1006);
  });

  it('of the server tells its sockets and takes less than the grace', async () => {
    const { url } = await start();
    const ada = await user(url);
    const started = performance.now();
    await running?.close();
    expect(await ada.closed).toBe(1001);
    expect(performance.now() - started).toBeLessThan(400);
  });
});

/** A client that speaks the protocol and then reads nothing. */
async function stalled(url: string) {
  const raw = connect(Number(new URL(url).port), '127.0.0.1');
  raw.on('error', () => {});
  await once(raw, 'connect');
  const key = Buffer.alloc(16).toString('base64');
  raw.write(
    `GET /ws HTTP/1.1\r\nHost: ${new URL(url).host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: parley.v1, bearer.owner-token\r\n\r\n`,
  );
  await once(raw, 'data');
  const text = Buffer.from('{"type":"subscribe","world":"w","after":0}');
  raw.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text]));
  await once(raw, 'data');
  raw.pause();
  return raw;
}

it('two hundred clients, some of which read nothing: all others get everything, those are cut off', async () => {
  const { log, url } = await start({ stallMs: 300, windowBytes: 64 * 1024 });
  const dead = await Promise.all(Array.from({ length: 5 }, () => stalled(url)));
  const whole = await Promise.all(Array.from({ length: 5 }, () => user(url)));
  const narrow = await Promise.all(Array.from({ length: 190 }, () => user(url)));
  for (const who of whole) who.send({ type: 'subscribe', id: 's', world: 'w' });
  for (const who of narrow) who.send({ type: 'subscribe', id: 's', world: 'w', chat: 'b' });
  await Promise.all([...whole, ...narrow].map((who) => who.until((f) => f.id === 's')));
  // Sixteen megabytes are more than what the kernel takes for a client that reads nothing.
  for (let n = 0; n < 200; n += 1) {
    log.append(n % 10 === 9 ? 'b' : 'a', true, n % 5 === 0 ? 200_000 : 10);
    log.delta('b', 'x');
    await nextTick();
  }
  await Promise.all([...whole, ...narrow].map((who) => who.until((f) => f.seq === 200)));
  for (const who of whole) expect(seqs(who)).toEqual(upTo(200));
  for (const who of narrow) expect(seqs(who)).toHaveLength(20);
  while ((running?.connections() ?? 0) > 195) await nextTick();
  for (const raw of dead) raw.destroy();
}, 20_000);

it('a refused upgrade leaves no error behind', async () => {
  const { url } = await start();
  const refused = openUser(url, null);
  refused.ws.on('error', () => {});
  expect(await refused.closed).toBe(1006);
});
