import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApp } from './app.ts';
import type { ServerApp } from './endpoint.ts';
import { memoryLog } from './testing/memory-log.ts';
import { stubParley } from './testing/stub-parley.ts';

let home: string;
let app: ServerApp;

const appOver = (webDir: string | null): ServerApp =>
  createApp(stubParley(memoryLog()), { auth: true, allowedHosts: [], port: () => 3000, tokenFile: '/t', webDir });

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'parley-page-'));
  const web = join(home, 'web');
  mkdirSync(join(web, 'assets'), { recursive: true });
  writeFileSync(join(home, 'secret.txt'), 'secret');
  writeFileSync(join(web, 'index.html'), '<!doctype html><title>Parley</title>');
  writeFileSync(join(web, 'favicon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
  writeFileSync(join(web, 'assets', 'app-1234.js'), 'export {};');
  app = appOver(web);
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const get = (path: string, accept = '*/*', method = 'GET') =>
  app.request(`http://localhost:3000${path}`, { method, headers: { accept } });

describe('the page', () => {
  it.each(['/', '/w/demo', '/w/demo/c/1', '/settings'])(
    'answers %s with its index, asked for each time',
    async (path) => {
      const response = await get(path, 'text/html,*/*');
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('<title>Parley</title>');
      expect(response.headers.get('content-type')).toMatch(/^text\/html/);
      expect(response.headers.get('cache-control')).toBe('no-cache');
      expect(response.headers.get('content-security-policy')).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
    },
  );

  it('keeps hashed files for good', async () => {
    const response = await get('/assets/app-1234.js');
    expect(response.headers.get('content-type')).toMatch(/^text\/javascript/);
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect((await get('/favicon.svg')).headers.get('cache-control')).toBe('no-cache');
  });

  it.each([
    '/assets/none.js',
    '/none.png',
    '/api',
    '/secret.txt',
    '/..%2fsecret.txt',
    '/assets/..%2f..%2fsecret.txt',
    '/%2e%2e/secret.txt',
  ])('has no file %s, and says so in the error shape, not to be kept', async (path) => {
    const response = await get(path, path === '/api' ? 'application/json' : '*/*');
    expect(response.status).toBe(path === '/api' ? 401 : 404);
    expect(await response.json()).toMatchObject({ error: expect.any(String), message: expect.any(String) });
    expect(response.headers.get('cache-control')).toBe('no-store');
  });

  it('answers HEAD without a body', async () => {
    const response = await get('/', 'text/html', 'HEAD');
    expect([response.status, await response.text()]).toEqual([200, '']);
  });

  it('that is not built says what to do', async () => {
    const bare = appOver(null);
    const response = await bare.request('http://localhost:3000/', { headers: { accept: 'text/html' } });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('npm run build');
    expect((await bare.request('http://localhost:3000/x.js')).status).toBe(404);
  });
});
