import { AxeBuilder } from '@axe-core/playwright';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  composer,
  launchBrowser,
  makeWorld,
  messagesOf,
  openPage,
  openTab,
  type PageServer,
  say,
  startPageServer,
} from './support/page.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
});

const card = (page: Page) => page.locator('[data-approval]');
const inbox = (page: Page) => page.getByRole('button', { name: /^Inbox/ });
async function findings(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
}
async function onServer(run: (server: PageServer) => Promise<void>, scripts = {}): Promise<void> {
  const server = await startPageServer({ scripts });
  try {
    await run(server);
  } finally {
    await server.remove();
  }
}

it('a new agent is asked for over a reload and a crash, allowed by a key, and can be addressed', async () => {
  let again: PageServer | null = null;
  const own = await startPageServer();
  try {
    const page = await openPage(browser, own, '/w/demo');
    await say(page, 'create an agent called Scout for finding sources');
    await card(page).waitFor({ timeout: 20_000 });
    expect(await card(page).textContent()).toContain('finding sources');
    await page.locator('[data-agent="planner"]').getByText('waiting for you').waitFor();
    await expect.poll(() => page.title()).toMatch(/^\(1\) /);
    expect(await findings(page)).toEqual([]);
    await page.reload();
    await card(page).waitFor();
    await own.kill();
    again = await startPageServer({ data: own.data, port: Number(new URL(own.url).port) });
    await page.reload();
    await card(page).waitFor();
    // A key that is typed elsewhere decides nothing.
    await composer(page).press('y');
    expect(await composer(page).inputValue()).toBe('y');
    await composer(page).fill('');
    await card(page).focus();
    await page.keyboard.press('y');
    await page.locator('[data-decided="answered"]').getByText('Owner allowed').waitFor();
    await page.locator('[data-agent="scout"]').waitFor({ timeout: 20_000 });
    await expect.poll(() => inbox(page).getAttribute('data-inbox')).toBe('0');
    await expect.poll(() => page.title()).not.toMatch(/^\(/);
    await say(page, '@scout hello');
    await messagesOf(page, 'scout').first().waitFor({ timeout: 20_000 });
  } finally {
    await (again ?? own).remove();
  }
});

it('what waits is found from elsewhere, denied with a reason, and told in another tab', async () => {
  await onServer(async (server) => {
    const page = await openPage(browser, server, '/w/demo', {
      viewport: { width: 390, height: 844 },
      colorScheme: 'dark',
    });
    await say(page, 'create an agent called Scout for finding sources');
    await card(page).waitFor({ timeout: 20_000 });
    expect(await findings(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth')).toBe(
      false,
    );
    const other = await openTab(page, `${server.url}/`);
    await expect.poll(() => other.title()).toBe('(1) Worlds · Parley');
    await inbox(other).click();
    expect(await findings(other)).toEqual([]);
    await other.getByRole('dialog').getByRole('link').click();
    await card(other).getByLabel('Reason for a no').fill('we have one');
    await card(other).getByRole('button', { name: 'Deny' }).click();
    await page.locator('[data-decided="denied"]').getByText('we have one').waitFor();
    expect(await card(page).count()).toBe(0);
    expect(await page.locator('[data-agent="scout"]').count()).toBe(0);
  });
});

it('an answer that comes too late is told with the decision that counts', async () => {
  await onServer(async (server) => {
    const page = await openPage(browser, server, '/w/demo');
    await say(page, 'create an agent called Scout for finding sources');
    await card(page).waitFor({ timeout: 20_000 });
    const id = await card(page).getAttribute('data-approval');
    await page.route('**/answer', async (route) => {
      await server.call('POST', `/api/v1/worlds/demo/approvals/${id}/answer`, { optionId: 'no' });
      await route.continue();
    });
    await card(page).getByRole('button', { name: 'Allow' }).click();
    await page.getByText('Your answer came too late. Owner denied').waitFor();
    await page.locator('[data-decided="denied"]').waitFor();
  });
});

const ASKER = `- when: {toolResult: '.'}
  say: "{{toolResult}} it is"
- call: {tool: ask_user, args: {questions: [{question: 'Which colour?', options: [red, blue]}, {question: 'Why?', freeText: true}]}}
`;

it('questions take a number key and own words, and all of them want an answer', async () => {
  await onServer(
    async (server) => {
      const page = await openPage(browser, server, await makeWorld(server, ['Asker']));
      await say(page, '@asker go');
      await card(page).waitFor({ timeout: 20_000 });
      await card(page).focus();
      await page.keyboard.press('2');
      expect(await card(page).getByRole('button', { pressed: true }).textContent()).toContain('blue');
      await card(page).getByRole('button', { name: 'Answer' }).click();
      await card(page).getByRole('alert').getByText('has no answer yet').waitFor();
      await card(page).getByLabel('Answer in your own words').fill('calm');
      await card(page).getByRole('button', { name: 'Answer' }).click();
      await page.locator('[data-decided="answered"]').getByText('Owner answered: blue, calm').waitFor();
      await messagesOf(page, 'asker').getByText('it is').waitFor();
    },
    { asker: ASKER },
  );
});
