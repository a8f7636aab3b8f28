import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  composer,
  launchBrowser,
  makeWorld,
  messagesOf,
  openPage,
  type PageServer,
  say,
  startPageServer,
} from './support/page.ts';

const ECHO = '- say: "{{sender}} said something"\n  chunkSize: 4\n';
const SCRIPTS = {
  echo: ECHO,
  writer: ECHO,
  wanda: ECHO,
  critic: ECHO,
  ping: '- say: "@pong your turn {{turn}}"\n',
  pong: '- say: "@ping your turn {{turn}}"\n',
  quiet: '- think: better not\n',
  broken: '- fail: {code: provider_auth, message: the key is wrong}\n',
  slow: `- say: "${'one two three four five '.repeat(200)}"\n  delayMs: 30\n  chunkSize: 8\n`,
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

describe('a newcomer', () => {
  it('opens the address, says something and sees three agents hand it on to each other', async () => {
    // High enough for the whole conversation: the list holds what can be seen.
    const page = await openPage(browser, server, '/', { viewport: { width: 1280, height: 2600 } });
    await page.waitForFunction("!location.hash.includes('token')");
    await page.getByRole('link', { name: /Demo/ }).click();
    await expect.poll(() => page.getByText('No model is connected.', { exact: true }).count()).toBe(1);
    await say(page, 'Write a short launch note.');
    await page.locator('[data-live]').first().waitFor();
    await messagesOf(page, 'planner').nth(1).waitFor({ timeout: 30_000 });
    expect(await messagesOf(page, 'writer').count()).toBe(1);
    expect(await messagesOf(page, 'critic').count()).toBeGreaterThan(0);
    const handedOn = messagesOf(page, 'planner').first().locator('[data-receipt="woke"]');
    expect(await handedOn.textContent()).toMatch(/Writer,\s*Critic/);
    await expect.poll(() => page.getByRole('button', { name: 'Stop' }).count()).toBe(0);
  });

  it('without a token is told where it lies, and comes in with it', async () => {
    const page = await openPage(browser, { ...server, token: 'wrong' });
    await page.getByText('Nobody has this access token').waitFor();
    expect(await page.locator('#where').textContent()).toContain(`${server.data}/token`);
    await page.getByLabel('Access token').fill(server.token);
    await page.getByRole('button', { name: 'Enter' }).click();
    await page.getByRole('heading', { name: 'Worlds' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Worlds' }).waitFor();
  });

  it('makes a world, an agent and a chat, and gets an answer', async () => {
    const page = await openPage(browser, server);
    await page.getByRole('button', { name: 'New world' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Atelier');
    await page.getByRole('button', { name: 'Create world' }).click();
    await page.getByRole('button', { name: 'Start a chat' }).click();
    await page.getByRole('button', { name: 'New agent' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Ada Lovelace');
    await page.getByLabel('Provider').selectOption('script');
    await page.getByLabel('Model', { exact: true }).fill('echo');
    await page.getByRole('button', { name: 'Create agent' }).click();
    await page.locator('[data-agent="ada-lovelace"]').waitFor();
    await say(page, '@Ada Lovelace good morning');
    await messagesOf(page, 'ada-lovelace').getByText('Owner said something').waitFor();
  });
});

describe('the composer', () => {
  it('completes a name by keyboard and addresses the agent that was picked', async () => {
    const page = await openPage(browser, server, await makeWorld(server, ['Writer', 'Wanda']));
    await composer(page).pressSequentially('@w');
    const options = page.getByRole('option');
    await expect.poll(() => options.count()).toBe(2);
    expect(await composer(page).getAttribute('aria-expanded')).toBe('true');
    await page.keyboard.press('ArrowDown');
    expect(await page.getByRole('option', { selected: true }).textContent()).toContain('Wanda');
    const active = await composer(page).getAttribute('aria-activedescendant');
    expect(await page.locator(`[id="${active}"]`).textContent()).toContain('Wanda');
    await page.keyboard.press('Escape');
    await expect.poll(() => options.count()).toBe(0);
    await page.keyboard.type('a');
    await page.keyboard.press('Backspace');
    await page.keyboard.press('Backspace');
    await page.keyboard.press('Backspace');
    await page.keyboard.type('@wan');
    await page.keyboard.press('Enter');
    expect(await composer(page).inputValue()).toBe('@Wanda ');
    expect(await page.locator('mark.address').textContent()).toBe('@Wanda');
    await page.keyboard.type('hello');
    await page.keyboard.press('Enter');
    await messagesOf(page, 'wanda').waitFor();
    expect(await messagesOf(page, 'writer').count()).toBe(0);
  });

  it('does not send while an input method composes, and makes a line of Shift+Enter', async () => {
    const page = await openPage(browser, server, '/w/demo');
    await composer(page).fill('にほん');
    await composer(page).dispatchEvent('keydown', { key: 'Enter', isComposing: true });
    await composer(page).dispatchEvent('keydown', { key: 'Enter', keyCode: 229 });
    await composer(page).press('Shift+Enter');
    await page.keyboard.type('go');
    expect(await composer(page).inputValue()).toBe('にほん\ngo');
    expect(await messagesOf(page, 'owner').count()).toBe(0);
    await page.keyboard.press('Enter');
    await page.locator('[data-message]').first().waitFor();
    await expect.poll(() => composer(page).inputValue()).toBe('');
  });

  it('keeps a send that failed, says why, and sends it once when tried again', async () => {
    const page = await openPage(browser, server, await makeWorld(server, ['Echo']));
    await page.locator('[data-agent="echo"]').waitFor();
    // The message arrives, its answer does not.
    let isFirst = true;
    await page.route('**/messages', async (route) => {
      if (route.request().method() !== 'POST' || !isFirst) return route.continue();
      isFirst = false;
      await route.fetch();
      await route.abort();
    });
    await say(page, 'only once');
    await page.getByText('Not sent: The server cannot be reached').waitFor();
    expect(await composer(page).inputValue()).toBe('only once');
    await page.getByRole('button', { name: 'Try again' }).click();
    await expect.poll(() => composer(page).inputValue()).toBe('');
    await messagesOf(page, 'echo').waitFor();
    expect(await page.locator('[data-message].human').count()).toBe(1);
  });

  it('keeps a draft per chat, also over a reload', async () => {
    const page = await openPage(browser, server, '/w/demo');
    await composer(page).fill('half a thought');
    await page.getByRole('button', { name: 'New chat', exact: true }).click();
    await expect.poll(() => composer(page).inputValue()).toBe('');
    await page.goBack();
    await expect.poll(() => composer(page).inputValue()).toBe('half a thought');
    await page.reload();
    await expect.poll(() => composer(page).inputValue()).toBe('half a thought');
  });
});

describe('a receipt', () => {
  it('says who was not woken and why, and forwards by one click', async () => {
    const path = await makeWorld(server, ['Writer', 'Critic'], { humanMentions: 'line' });
    const page = await openPage(browser, server, path);
    await say(page, '@writer see what @critic says, and @wrter');
    await messagesOf(page, 'writer').waitFor();
    const ignored = page.locator('.human [data-receipt="ignored"]');
    expect(await ignored.textContent()).toContain('a name in mid-text wakes nobody');
    expect(await ignored.textContent()).toMatch(/nobody here has this name\.\s*Did you mean\s*Writer\?/);
    await ignored.getByRole('button', { name: 'Forward to Critic' }).click();
    await messagesOf(page, 'critic').waitFor();
  });
});

describe('a limit', () => {
  it('is told with its way on, and goes on by one click', async () => {
    const page = await openPage(browser, server, await makeWorld(server, ['Ping', 'Pong'], { turnLimit: 2 }));
    await say(page, '@ping begin');
    const notice = page.locator('[data-notice="limit"]');
    await notice.first().waitFor();
    expect(await messagesOf(page, 'ping').count()).toBe(2);
    await notice.first().getByRole('button', { name: 'Continue' }).click();
    await notice.nth(1).waitFor();
    expect(await messagesOf(page, 'ping').count()).toBe(4);
    expect(await page.getByRole('button', { name: 'Continue' }).count()).toBe(1);
    await page.reload();
    await notice.nth(1).waitFor();
    expect(await page.getByRole('button', { name: 'Continue' }).count()).toBe(1);
  });

  it('has no way on when nobody is asked to continue any more', async () => {
    const page = await openPage(
      browser,
      server,
      await makeWorld(server, ['Ping', 'Pong', 'Quiet'], { turnLimit: 1, mainAgent: 'quiet' }),
    );
    await say(page, '@ping begin');
    await page.getByRole('button', { name: 'Continue' }).waitFor();
    await say(page, 'enough');
    await expect.poll(() => page.getByRole('button', { name: 'Continue' }).count()).toBe(0);
  });
});

describe('a turn', () => {
  it('that chooses silence stops thinking at once', async () => {
    const page = await openPage(browser, server, await makeWorld(server, ['Quiet']));
    await say(page, '@quiet are you there?');
    await page.locator('[data-agent="quiet"][data-activity="silent"]').waitFor();
    expect(await page.locator('[data-live]').count()).toBe(0);
    expect(await page.locator('[data-status]').count()).toBe(0);
  });

  it('that fails says why in the room and in the panel', async () => {
    const page = await openPage(browser, server, await makeWorld(server, ['Broken']));
    await say(page, '@broken hello');
    await page.locator('[data-notice="turn_failed"]').getByText('the key is wrong').waitFor();
    await page.locator('[data-agent="broken"][data-activity="failed"]').waitFor();
  });

  it('is stopped by a button and keeps what it has said', async () => {
    const page = await openPage(browser, server, await makeWorld(server, ['Slow']));
    await say(page, '@slow talk');
    await page.locator('[data-live="slow"]').getByText('three').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await messagesOf(page, 'slow').getByText('stopped', { exact: true }).waitFor();
    expect(await messagesOf(page, 'slow').textContent()).toContain('one two three');
    expect(await page.locator('[data-live]').count()).toBe(0);
  });
});
