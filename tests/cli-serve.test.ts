import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { command, start, startServer, temporaryFolder } from './support/command.ts';

const ONE_LINE = /^parley: [^\n]+\n$/;

test('tells a program on the first line where it listens, and nothing else on standard output', async () => {
  const data = temporaryFolder();
  const server = await startServer(data);
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(server.line).toEqual({
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    tokenFile: join(data, 'token'),
    version,
  });
  expect(statSync(server.line.tokenFile).mode & 0o777).toBe(0o600);
  expect(statSync(join(data, 'server.json')).mode & 0o777).toBe(0o600);
  expect(await (await fetch(`${server.line.url}/health`)).json()).toMatchObject({ status: 'ok' });
  const token = readFileSync(server.line.tokenFile, 'utf8').trim();
  const worlds = `${server.line.url}/api/v1/worlds`;
  expect((await fetch(worlds)).status).toBe(401);
  expect((await fetch(worlds, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);

  const before = Date.now();
  server.child.kill('SIGTERM');
  const { code, out } = await server.ended;
  expect(code).toBe(0);
  expect(Date.now() - before).toBeLessThan(5_000);
  expect(out.split('\n')).toHaveLength(2);
  expect(readdirSync(data)).not.toContain('server.json');
});

test('stops for SIGTERM although clients hold connections open', async () => {
  const data = temporaryFolder();
  const server = await startServer(data);
  const authorization = `Bearer ${readFileSync(server.line.tokenFile, 'utf8').trim()}`;
  const stream = await fetch(`${server.line.url}/api/v1/worlds/demo/events/stream`, { headers: { authorization } });
  expect(stream.status).toBe(200);
  const before = Date.now();
  server.child.kill('SIGTERM');
  expect((await server.ended).code).toBe(0);
  expect(Date.now() - before).toBeLessThan(5_000);
  await stream.body?.cancel().catch(() => {});
});

test('refuses a second server on the data directory, naming the first', async () => {
  const data = temporaryFolder();
  const first = await startServer(data);
  const second = await command(data, ['serve', '--port', '0']);
  expect(second).toMatchObject({ code: 1, out: '' });
  expect(second.err).toMatch(ONE_LINE);
  expect(second.err).toContain(String(first.child.pid));
  expect((await fetch(`${first.line.url}/health`)).status).toBe(200);
  expect(JSON.parse(readFileSync(join(data, 'server.json'), 'utf8'))).toMatchObject({ pid: first.child.pid });
});

test('starts again after kill -9', async () => {
  const data = temporaryFolder();
  const first = await startServer(data);
  first.child.kill('SIGKILL');
  await first.ended;
  expect(await command(data, ['worlds', 'list', '--json'])).toMatchObject({ code: 0 });
  const again = await startServer(data);
  expect((await fetch(`${again.line.url}/health`)).status).toBe(200);
});

test('ends with one line where the port is used', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => taken.once('listening', resolve));
  onTestFinished(() => void taken.close());
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? String(address.port) : '';
  const data = temporaryFolder();
  const refused = await command(data, ['serve', '--port', port]);
  expect(refused).toMatchObject({ code: 1, out: '' });
  expect(refused.err).toMatch(ONE_LINE);
  expect(refused.err).toContain(port);
  expect(readdirSync(data)).not.toContain('server.json');
});

test.each([
  ['damaged', Buffer.from('SQLite format 3\0 but not really, whatever follows is no header at all'.repeat(20))],
  ['no database', Buffer.from('dear diary\n'.repeat(50))],
])('leaves a %s file as it is and says what and where', async (_what, bytes) => {
  const data = temporaryFolder();
  const file = join(data, 'parley.db');
  writeFileSync(file, bytes);
  for (const args of [
    ['serve', '--port', '0'],
    ['worlds', 'list'],
    ['run', 'demo', 'hi'],
  ]) {
    const refused = await command(data, args);
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toMatch(ONE_LINE);
    expect(refused.err).toContain(file);
  }
  const looked = await command(data, ['doctor']);
  expect(looked.code).toBe(1);
  expect(looked.out).toMatch(/^fail {2}database/m);
  expect(readFileSync(file).equals(bytes)).toBe(true);
  expect(readdirSync(data)).toEqual(['parley.db']);
});

test('doctor finds nothing wrong before the first start and beside a running server, and changes nothing', async () => {
  const data = temporaryFolder();
  const fresh = await command(data, ['doctor', '--json']);
  expect(fresh.code).toBe(0);
  expect(JSON.parse(fresh.out)).toMatchObject({ ok: true });
  expect(readdirSync(data)).toEqual([]);
  const server = await startServer(data);
  const before = readFileSync(join(data, 'parley.db'));
  const looked = await command(data, ['doctor']);
  expect(looked.code).toBe(0);
  expect(looked.out).toMatch(new RegExp(`^ok +server .*${server.child.pid}$`, 'm'));
  expect(readFileSync(join(data, 'parley.db')).equals(before)).toBe(true);
});

test('ends with one line where the data directory is a file', async () => {
  const file = join(temporaryFolder(), 'file');
  writeFileSync(file, '');
  const refused = await command(file, ['serve', '--port', '0']);
  expect(refused).toMatchObject({ code: 1, out: '' });
  expect(refused.err).toMatch(ONE_LINE);
  expect(refused.err).toContain(file);
});

test('ends with one line where a setting is bad', async () => {
  const started = start(temporaryFolder(), ['serve'], { PARLEY_PORT: 'many' });
  const refused = await started.ended;
  expect(refused).toMatchObject({ code: 1, out: '' });
  expect(refused.err).toMatch(ONE_LINE);
  expect(refused.err).toContain('PARLEY_PORT');
});
