import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../core/paths.ts';

function setup(args: readonly string[], env: Record<string, string>) {
  const script = join(packageRoot(), 'scripts', 'setup.mjs');
  const inherited = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' };
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
    env: { ...inherited, ...env },
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

test('set-up is silent where nothing is to do', () => {
  expect(setup([], {})).toEqual({ status: 0, stdout: '', stderr: '' });
});

test('set-up without a browser goes on elsewhere, saying that its tests are skipped', () => {
  const { status, stdout, stderr } = setup(['--browser'], { CHROME_PATH: '/no/such/browser' });
  expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
  expect(stderr).toMatch(/^parley setup: CHROME_PATH [^\n]+ will be skipped\n$/);
});

test('set-up without a browser fails in CI, in one line', () => {
  const { status, stdout, stderr } = setup(['--browser'], { CHROME_PATH: '/no/such/browser', CI: 'true' });
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/^parley setup: CHROME_PATH [^\n]+\n$/);
});
