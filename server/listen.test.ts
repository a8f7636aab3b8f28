import { createServer, get } from 'node:http';
import { setImmediate as nextTick } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { AppError } from '../core/protocol/errors.ts';
import { createApp } from './app.ts';
import { type ListenOptions, type RunningServer, startServer } from './listen.ts';
import { localFetch } from './local-fetch.ts';
import { memoryLog } from './testing/memory-log.ts';
import { type RealServer, realServer } from './testing/real-server.ts';
import { stubParley } from './testing/stub-parley.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const fixed = { host: '127.0.0.1', port: 0, auth: true, allowedHosts: [], tokenFile: '/somewhere/token', webDir: null };

async function start(options: Partial<ListenOptions> = {}): Promise<RunningServer> {
  const running = await startServer({ parley: stubParley(memoryLog()), ...fixed, ...options });
  closers.push(() => running.close());
  return running;
}

async function real(options: Parameters<typeof realServer>[0] = {}): Promise<RealServer> {
  const server = await realServer({ demo: true, ...options });
  closers.push(() => server.close());
  return server;
}

describe('listening', () => {
  it('on a used port says which and how to choose another', async () => {
    const { port } = await start();
    const error = (await startServer({ parley: stubParley(memoryLog()), ...fixed, port }).catch(
      (e: unknown) => e,
    )) as AppError;
    expect(error.code).toBe('busy');
    expect(error.message).toContain(String(port));
    expect(error.message).toContain('--port');
  });

  it('on an address that is not of this machine says so', async () => {
    await expect(start({ host: '192.0.2.1' })).rejects.toMatchObject({ code: 'invalid' });
  });

  it('names an IPv6 address as a browser needs it', async () => {
    const { url } = await start({ host: '::1' });
    expect(url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });

  it('on all addresses names one that it answers to', async () => {
    const { url } = await start({ host: '0.0.0.0' });
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });

  it('answers to allowed names and to no others', async () => {
    const { port } = await start({ allowedHosts: ['chat.example.org'] });
    const statusFor = (host: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        get({ port, host: '127.0.0.1', path: '/health', headers: { host } }, (response) => {
          response.resume();
          resolve(response.statusCode);
        }).on('error', reject);
      });
    expect(await statusFor('chat.example.org')).toBe(200);
    expect(await statusFor('other.example.org')).toBe(403);
  });
});

describe('closing', () => {
  it('lets an open request finish, and a waiting one answer early', async () => {
    const server = await real();
    const { body } = await server.call('POST', '/api/v1/worlds/demo/chats', {});
    const at = `/api/v1/worlds/demo/chats/${String(body['id'])}`;
    await server.call('POST', `${at}/pause`);
    const waiting = server.call('POST', `${at}/messages?wait=idle&timeoutMs=60000`, { content: '@planner hello' });
    while (((await server.call('GET', `${at}/turns`)).body['turns'] as unknown[]).length === 0) await nextTick();
    const started = performance.now();
    await server.running.close();
    expect(await waiting).toMatchObject({ status: 201, body: { idle: false } });
    expect(performance.now() - started).toBeLessThan(4_000);
    await expect(fetch(`${server.url}/health`)).rejects.toThrow();
  });

  it('twice is once', async () => {
    const running = await start();
    await Promise.all([running.close(), running.close()]);
  });

  it('frees the port', async () => {
    const running = await start();
    await running.close();
    const next = createServer();
    await new Promise<void>((resolve, reject) => {
      next.once('error', reject);
      next.listen(running.port, '127.0.0.1', resolve);
    });
    await new Promise((resolve) => next.close(resolve));
  });
});

describe('without a socket', () => {
  it('a caller in the same process needs no host, but its token', async () => {
    const app = createApp(stubParley(memoryLog()), { ...fixed, port: () => 0 });
    expect((await localFetch(app, 'owner-token')('/api/v1/session')).status).toBe(200);
    expect((await localFetch(app, null)('/api/v1/session')).status).toBe(401);
    expect((await localFetch(app, null)('/health')).status).toBe(200);
  });

  it('any other caller is held to the host rule', async () => {
    const app = createApp(stubParley(memoryLog()), { ...fixed, port: () => 3000 });
    const statusAt = async (url: string) => (await app.request(url)).status;
    expect(await statusAt('http://localhost:3000/health')).toBe(200);
    expect(await statusAt('http://localhost:3001/health')).toBe(403);
    expect(await statusAt('http://in-process.invalid/health')).toBe(403);
  });

  it('streams events as over a socket', async () => {
    const log = memoryLog();
    const app = createApp(stubParley(log), { ...fixed, port: () => 0 });
    const abort = new AbortController();
    const response = await localFetch(app, 'owner-token')('/api/v1/worlds/w/events/stream', { signal: abort.signal });
    log.append('c');
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('turn.queued')) text += (await reader?.read())?.value ?? '';
    await reader?.cancel();
  });
});

it('with --no-auth everybody is the owner, but pages elsewhere still cannot drive it', async () => {
  const { url } = await start({ auth: false });
  expect(await (await fetch(`${url}/api/v1/session`)).json()).toMatchObject({ role: 'owner' });
  const foreign = await fetch(`${url}/api/v1/session`, { headers: { origin: 'http://evil.example' } });
  expect(foreign.status).toBe(403);
});

it('a bug answers with an id that the log has, and with nothing else of it', async () => {
  const logged: Record<string, unknown>[] = [];
  const parley = stubParley(memoryLog());
  const log = { ...parley.log, error: (fields: Record<string, unknown>) => logged.push(fields) };
  const broken = new Proxy(parley, {
    get(target, name) {
      if (name === 'log') return log;
      if (name === 'listWorlds') {
        return () => {
          throw new TypeError('secret detail');
        };
      }
      return Reflect.get(target, name);
    },
  });
  const { url } = await start({ parley: broken });
  const response = await fetch(`${url}/api/v1/worlds`, { headers: { authorization: 'Bearer owner-token' } });
  const body = (await response.json()) as { error: string; message: string; details: { id: string } };
  expect([response.status, body.error]).toEqual([500, 'internal']);
  expect(JSON.stringify(body)).not.toContain('secret detail');
  expect(logged).toMatchObject([{ id: body.details.id, err: expect.any(TypeError) }]);
});

it('no token is ever in the log', async () => {
  const lines: string[] = [];
  const write = (fields: Record<string, unknown>, message: string) => lines.push(JSON.stringify(fields) + message);
  const server = await real({ log: { debug: write, info: write, warn: write, error: write } });
  const token = server.parley.ownerToken;
  await server.call('GET', `/api/v1/worlds?token=${token}`);
  await server.call('POST', '/api/v1/session', { token });
  await server.call('POST', '/api/v1/session', { token, x: 1 });
  await fetch(`${server.url}/api/v1/worlds`, { headers: { cookie: `parley_session=${token}` } });
  await server.call('PUT', '/api/v1/models/openai', { apiKey: 'sk-very-secret-key' });
  expect(lines.filter((line) => line.includes('request')).length).toBeGreaterThanOrEqual(4);
  expect(lines.filter((line) => line.includes(token) || line.includes('sk-very-secret-key'))).toEqual([]);
});
