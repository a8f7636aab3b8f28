import { defineConfig } from 'vitest/config';
import { findBrowser, inCi } from './scripts/setup.mjs';

const browser = findBrowser();
if (browser === null) {
  console.error('\nBROWSER TESTS SKIPPED: no Chromium found; install one or set CHROME_PATH\n');
}

export default defineConfig({
  test: {
    // Two files at a time: most wait for servers and browsers, and the machine of the tests has two cores.
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{core,server,cli,web,plugins}/**/*.test.ts'],
          environment: 'node',
        },
      },
      {
        test: {
          name: 'blackbox',
          include: ['tests/**/*.test.ts'],
          exclude: ['tests/**/*.browser.test.ts'],
          environment: 'node',
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      // In CI the tests run and fail without a browser; elsewhere the line above says that they did not run.
      ...(browser === null && !inCi()
        ? []
        : [
            {
              test: {
                name: 'browser',
                include: ['tests/**/*.browser.test.ts'],
                environment: 'node' as const,
                env: { CHROME_PATH: browser ?? 'no-browser-found' },
                testTimeout: 60_000,
                hookTimeout: 60_000,
              },
            },
          ]),
    ],
  },
});
