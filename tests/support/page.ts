import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { packageRoot } from '../../core/paths.ts';

const BUILT = join(packageRoot(), 'dist', 'node', 'cli', 'main.js');

/** The built server with the page, on a data directory of its own. */
export interface PageServer {
  readonly url: string;
  readonly token: string;
  readonly data: string;
  /** Calls the API as the owner; throws for an answer that is not a success. */
  call<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** Ends it at once, as a crash does, and keeps its data. */
  kill(): Promise<void>;
  /** Ends it and removes its data. */
  remove(): Promise<void>;
}

/** `scripts` are what agents of the provider `script` answer, by the name of their model. */
export async function startPageServer(
  options: { data?: string; port?: number; scripts?: Record<string, string> } = {},
): Promise<PageServer> {
  const data = options.data ?? mkdtempSync(join(tmpdir(), 'parley-page-'));
  mkdirSync(join(data, 'scripts'), { recursive: true });
  for (const [name, yaml] of Object.entries(options.scripts ?? {})) {
    writeFileSync(join(data, 'scripts', `${name}.yaml`), yaml);
  }
  const child = spawn(process.execPath, [BUILT, 'serve', '--data', data, '--port', String(options.port ?? 0)], {
    env: { PATH: process.env['PATH'] ?? '', HOME: data },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const first = await Promise.race([once(child.stdout, 'data'), ended]);
  const { url, tokenFile } = JSON.parse(String(first[0])) as { url: string; tokenFile: string };
  const token = readFileSync(tokenFile, 'utf8').trim();
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  return {
    url,
    token,
    data,
    async call<T>(method: string, path: string, body?: unknown) {
      const response = await fetch(url + path, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return (text === '' ? undefined : JSON.parse(text)) as T;
    },
    kill,
    async remove() {
      await kill();
      rmSync(data, { recursive: true, force: true });
    },
  };
}

let worlds = 0;

/** A new world whose agents answer from the scripts of their names. Returns the path of its one chat. */
export async function makeWorld(server: PageServer, agents: readonly string[], settings: object = {}): Promise<string> {
  worlds += 1;
  const { id } = await server.call<{ id: string }>('POST', '/api/v1/worlds', { name: `World ${worlds}` });
  for (const name of agents) {
    const model = name.toLowerCase();
    await server.call('POST', `/api/v1/worlds/${id}/agents`, { name, provider: 'script', model });
  }
  if (Object.keys(settings).length > 0) await server.call('PATCH', `/api/v1/worlds/${id}`, settings);
  const chat = await server.call<{ id: string }>('POST', `/api/v1/worlds/${id}/chats`, {});
  return `/w/${id}/c/${chat.id}`;
}

/** Says something through the API. */
export async function post(server: PageServer, path: string, content: string): Promise<void> {
  const [, , world, , chat] = path.split('/');
  await server.call('POST', `/api/v1/worlds/${world}/chats/${chat}/messages`, { content });
}

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: process.env['CHROME_PATH'] ?? '/usr/bin/chromium', args: FLAGS });
}

/** A tab that is signed in by the token in the address. What the page throws or logs as an error fails the test. */
export async function openPage(
  browser: Browser,
  server: PageServer,
  path = '/',
  options: BrowserContextOptions = {},
): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB', ...options });
  const page = await context.newPage();
  const faults = watchFaults(page);
  onTestFinished(async () => {
    await context.close();
    expect(faults).toEqual([]);
  });
  await page.goto(`${server.url}${path}#token=${encodeURIComponent(server.token)}`);
  return page;
}

/** Another tab of the same browser. */
export async function openTab(page: Page, url: string): Promise<Page> {
  const tab = await page.context().newPage();
  await tab.goto(url);
  return tab;
}

function watchFaults(page: Page): string[] {
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => {
    const isNetwork = /Failed to load resource|WebSocket connection/.test(message.text());
    if (message.type() === 'error' && !isNetwork) faults.push(message.text());
  });
  return faults;
}

export const composer = (page: Page) =>
  page.getByRole('textbox', { name: 'Message' }).or(page.getByRole('combobox', { name: 'Message' }));

export async function say(page: Page, text: string): Promise<void> {
  await composer(page).fill(text);
  await composer(page).press('Enter');
}

/** Messages of one author, in order. */
export const messagesOf = (page: Page, sender: string) => page.locator(`[data-message][data-sender="${sender}"]`);
