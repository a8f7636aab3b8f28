import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  composer,
  launchBrowser,
  makeWorld,
  messagesOf,
  openPage,
  openTab,
  type PageServer,
  post,
  say,
  startPageServer,
} from './support/page.ts';

const words = (count: number): string => Array.from({ length: count }, (_, index) => `word${index}`).join(' ');
const SCRIPTS = {
  slow: `- say: "${words(220)} END"\n  delayMs: 25\n  chunkSize: 12\n`,
  quiet: '- think: better not\n',
};
let browser: Browser;
let server: PageServer;
beforeAll(async () => {
  [browser, server] = await Promise.all([launchBrowser(), startPageServer({ scripts: SCRIPTS })]);
});
afterAll(async () => {
  await browser.close();
  await server.remove();
});

const live = (page: Page) => page.locator('[data-live="slow"]');
const scroller = (page: Page) => page.getByRole('region', { name: 'Messages' });
interface Box {
  scrollHeight: number;
  scrollTop: number;
  clientHeight: number;
}
const distanceToBottom = (page: Page) =>
  scroller(page).evaluate((box: Box) => box.scrollHeight - box.scrollTop - box.clientHeight);
const scrollTop = (page: Page) => scroller(page).evaluate((box: Box) => box.scrollTop);

describe('a stream', () => {
  it('is the same after a reload in the middle of it, and at its end', async () => {
    const page = await openPage(browser, server, await makeWorld(server, ['Slow']));
    await say(page, '@slow go');
    await live(page).getByText('word20').waitFor();
    await page.reload();
    await live(page)
      .getByText(/^word0 word1 word2 .*word21/)
      .waitFor();
    await messagesOf(page, 'slow').getByText('END').waitFor();
    const whole = await messagesOf(page, 'slow').locator('.markdown').textContent();
    expect(whole?.trim()).toBe(`${words(220)} END`);
    expect(await live(page).count()).toBe(0);
    await page.reload();
    await messagesOf(page, 'slow').getByText('END').waitFor();
    expect(await messagesOf(page, 'slow').locator('.markdown').textContent()).toBe(whole);
  });

  it('is seen by somebody who opens the chat while it runs', async () => {
    const path = await makeWorld(server, ['Slow']);
    await post(server, path, '@slow go');
    const page = await openPage(browser, server, path);
    await live(page)
      .getByText(/^word0 word1 word2 .*word20/)
      .waitFor();
  });

  it('keeps two tabs in step', async () => {
    const path = await makeWorld(server, ['Slow']);
    const one = await openPage(browser, server, path);
    await composer(one).waitFor();
    const two = await openTab(one, server.url + path);
    await composer(two).waitFor();
    await say(one, '@slow go');
    await Promise.all([live(one).getByText('word5').waitFor(), live(two).getByText('word5').waitFor()]);
    await two.getByRole('button', { name: 'Stop' }).click();
    await messagesOf(one, 'slow').getByText('stopped', { exact: true }).waitFor();
    await two.getByRole('button', { name: 'New chat', exact: true }).click();
    await expect.poll(() => one.getByRole('navigation').getByRole('listitem').count()).toBe(2);
  });
});

describe('the connection', () => {
  it('comes back by itself after the server has crashed and misses nothing', async () => {
    const own = await startPageServer();
    let again: PageServer | null = null;
    try {
      const page = await openPage(browser, own, '/w/demo');
      await composer(page).waitFor();
      await page.getByText('Connected', { exact: true }).waitFor();
      const path = new URL(page.url()).pathname;
      await own.kill();
      await page.getByText('Connection lost').waitFor();
      await say(page, 'said in the dark');
      await page.getByText('Not sent').waitFor();
      again = await startPageServer({ data: own.data, port: Number(new URL(own.url).port) });
      await post(again, path, '@human said meanwhile');
      await page.locator('[data-message]').getByText('said meanwhile').waitFor({ timeout: 30_000 });
      await page.getByText('Connected', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Try again' }).click();
      await page.locator('[data-message].human').getByText('said in the dark').waitFor();
    } finally {
      await (again ?? own).remove();
    }
  });

  it('opens a session anew where its own has ended', async () => {
    const page = await openPage(browser, server, await makeWorld(server, ['Quiet']));
    await composer(page).waitFor();
    await page.context().clearCookies();
    await say(page, 'hello');
    await page.getByLabel('Access token').fill(server.token);
    await page.getByRole('button', { name: 'Enter' }).click();
    await expect.poll(() => composer(page).inputValue()).toBe('hello');
  });
});

describe('a long chat', () => {
  async function longChat(count: number): Promise<string> {
    const path = await makeWorld(server, ['Quiet']);
    const line = 'A line of text that is long enough to wrap on a narrow screen. ';
    for (let index = 1; index <= count; index += 1)
      await post(server, path, `@human number ${index}. ${line.repeat(index % 5)}`);
    return path;
  }

  it('opens at its end and loads older messages without a jump', async () => {
    const page = await openPage(browser, server, await longChat(150));
    await page.locator('[data-message]').getByText('number 150.').waitFor();
    await expect.poll(() => distanceToBottom(page)).toBeLessThan(2);
    const anchor = page.locator('[data-message]').getByText('number 95.');
    for (let step = 0; step < 60 && (await anchor.count()) === 0; step += 1) {
      await scroller(page).hover();
      await page.mouse.wheel(0, -500);
      await page.evaluate('new Promise(requestAnimationFrame)');
    }
    await anchor.waitFor();
    await page.keyboard.press('Tab');
    const top = (await anchor.boundingBox())?.y ?? 0;
    await page.waitForLoadState('networkidle');
    expect(Math.abs(((await anchor.boundingBox())?.y ?? 0) - top)).toBeLessThan(3);
    for (
      let step = 0;
      step < 200 && (await page.locator('[data-message]').getByText('number 1.').count()) === 0;
      step += 1
    ) {
      await page.mouse.wheel(0, -900);
      await page.evaluate('new Promise(requestAnimationFrame)');
    }
    await page.locator('[data-message]').getByText('number 1.').waitFor();
  });

  it('lets one read above while it streams, and tells of what is new', async () => {
    const path = await longChat(30);
    const [, , world] = path.split('/');
    await server.call('POST', `/api/v1/worlds/${world}/agents`, { name: 'Slow', provider: 'script', model: 'slow' });
    const page = await openPage(browser, server, path);
    await page.locator('[data-message]').getByText('number 30.').waitFor();
    await say(page, '@slow go');
    await live(page).getByText('word5').waitFor();
    expect(await distanceToBottom(page)).toBeLessThan(2);
    await scroller(page).hover();
    await page.mouse.wheel(0, -900);
    const button = page.getByRole('button', { name: 'To the newest' });
    await button.waitFor();
    const before = await scrollTop(page);
    await page.getByRole('button', { name: '1 new message' }).waitFor({ timeout: 20_000 });
    expect(await scrollTop(page)).toBe(before);
    expect(await page.title()).toMatch(/^\(1\) /);
    await page.getByRole('button', { name: '1 new message' }).click();
    await expect.poll(() => distanceToBottom(page)).toBeLessThan(2);
    await expect.poll(() => page.title()).not.toMatch(/^\(/);
  });
});
