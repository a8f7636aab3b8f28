import { AxeBuilder } from '@axe-core/playwright';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  composer,
  launchBrowser,
  makeWorld,
  openPage,
  type PageServer,
  post,
  startPageServer,
} from './support/page.ts';

const SCRIPTS = { quiet: '- think: better not\n', ping: '- say: "@pong you"\n', pong: '- say: "@ping you"\n' };
let browser: Browser;
let server: PageServer;
/** A chat with a receipt, an answer and a limit notice in it. */
let path: string;
beforeAll(async () => {
  [browser, server] = await Promise.all([launchBrowser(), startPageServer({ scripts: SCRIPTS })]);
  path = await makeWorld(server, ['Ping', 'Pong', 'Quiet'], {
    turnLimit: 1,
    humanMentions: 'line',
    mainAgent: 'quiet',
  });
  await post(server, path, '@ping see @quiet and @pnog, `@pong`');
});
afterAll(async () => {
  await browser.close();
  await server.remove();
});

async function findings(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
}

const SIZES = { wide: { width: 1440, height: 900 }, narrow: { width: 390, height: 844 } };
const isWiderThanScreen = (page: Page) =>
  page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth');

for (const [colorScheme, size] of [
  ['dark', 'wide'],
  ['light', 'narrow'],
] as const) {
  it(`has no serious finding of axe in the room and its dialogs, ${colorScheme} and ${size}`, async () => {
    const page = await openPage(browser, server, path, { viewport: SIZES[size], colorScheme });
    await page.locator('[data-notice="limit"]').waitFor();
    expect(await isWiderThanScreen(page)).toBe(false);
    await composer(page).fill('@p');
    await page.getByRole('option').first().waitFor();
    expect(await findings(page)).toEqual([]);
    await composer(page).fill('');
    if (size === 'narrow') await page.getByRole('button', { name: 'Agents (3)' }).click();
    await page.locator('[data-agent="ping"]').getByRole('button').click();
    await page.getByLabel('System prompt').waitFor();
    expect(await findings(page)).toEqual([]);
  });
}

it('has no serious finding of axe in the worlds, settings, models and sign-in', async () => {
  const page = await openPage(browser, server);
  await page.getByRole('link', { name: /Demo/ }).waitFor();
  expect(await findings(page)).toEqual([]);
  await page.getByRole('button', { name: 'New world' }).click();
  await page.getByLabel('Name', { exact: true }).waitFor();
  expect(await findings(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.getByRole('link', { name: /Demo/ }).click();
  await page.getByRole('button', { name: 'World settings' }).click();
  await page.getByLabel('Main agent').waitFor();
  expect(await findings(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Connect a model' }).click();
  await page.getByLabel('API key').waitFor();
  expect(await findings(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.context().clearCookies();
  await page.reload();
  await page.getByLabel('Access token').waitFor();
  expect(await findings(page)).toEqual([]);
});

describe('a phone', () => {
  it('reaches chats and agents through drawers, by touch and by Escape', async () => {
    const page = await openPage(browser, server, path, { viewport: SIZES.narrow, hasTouch: true, isMobile: true });
    await page.getByRole('button', { name: 'Chats and world' }).tap();
    await page.getByRole('navigation').getByRole('link').first().waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByRole('navigation').count()).toBe(0);
    await page.getByRole('button', { name: 'Agents (3)' }).tap();
    await page.locator('[data-agent="quiet"]').waitFor();
    await page.getByRole('button', { name: 'Close' }).tap();
    await composer(page).fill('hello');
    await page.getByRole('button', { name: 'Send' }).tap();
    await expect.poll(() => composer(page).inputValue()).toBe('');
  });
});

describe('colours', () => {
  it('follow the system, and a choice that is kept', async () => {
    const page = await openPage(browser, server, '/', { colorScheme: 'dark' });
    await page.getByRole('heading', { name: 'Worlds' }).waitFor();
    const paper = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
    const dark = await paper();
    await page.getByRole('button', { name: /Colours: as the system/ }).click();
    const light = await paper();
    expect(light).not.toBe(dark);
    await page.reload();
    await page.getByRole('button', { name: /Colours: light/ }).waitFor();
    expect(await paper()).toBe(light);
  });
});

describe('Markdown of others', () => {
  it('becomes elements of the page’s own and never markup, script or a request', async () => {
    const room = await makeWorld(server, ['Quiet']);
    const requests: string[] = [];
    const page = await openPage(browser, server, room);
    page.on('request', (request) => requests.push(request.url()));
    await composer(page).waitFor();
    await post(
      server,
      room,
      [
        '@human # not a heading',
        '',
        '## A heading with <b>tags</b>',
        '',
        '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">',
        '',
        '[good](https://example.org/a) [bad](javascript:window.hacked=1) [data](data:text/html,x) [own](/api/v1/worlds)',
        '',
        '![a picture](https://example.org/p.png) ![bad](javascript:window.hacked=1)',
        '',
        '| a | b |',
        '|---|---|',
        '| <i>x</i> | &lt;b&gt; |',
        '',
        '- [x] done',
        '- [ ] open',
        '',
        '```js',
        'const a = "</code><script>window.hacked = 1</script>";',
        '```',
      ].join('\n'),
    );
    const text = page.locator('[data-message] .markdown');
    await text.locator('h4').waitFor();
    await text.locator('pre span').first().waitFor();
    expect(await text.locator('script, img, iframe, b, i').count()).toBe(0);
    expect(await text.textContent()).toContain('<script>window.hacked = 1</script>');
    expect(await text.locator('td').last().textContent()).toBe('<b>');
    const links = await text
      .locator('a')
      .evaluateAll((all: { href: string; rel: string; target: string }[]) => all.map((a) => [a.href, a.rel, a.target]));
    expect(links).toEqual([
      ['https://example.org/a', 'noopener noreferrer nofollow', '_blank'],
      ['https://example.org/p.png', 'noopener noreferrer nofollow', '_blank'],
    ]);
    expect(await text.getByRole('checkbox').count()).toBe(2);
    expect(await page.evaluate('window.hacked')).toBeUndefined();
    expect(requests.filter((url) => !url.startsWith(server.url))).toEqual([]);
  });

  it('of a quarter of a megabyte is folded, and shown whole by one click', async () => {
    const room = await makeWorld(server, ['Quiet']);
    const page = await openPage(browser, server, room);
    await composer(page).waitFor();
    await post(server, room, `@human begins ${'word '.repeat(50_000)} ends`);
    const message = page.locator('[data-message]');
    await message.getByRole('button', { name: /Show all/ }).waitFor();
    expect((await message.textContent())?.length).toBeLessThan(10_000);
    await message.getByRole('button', { name: /Show all/ }).click();
    await message.getByText(/ends$/).waitFor();
  });
});
