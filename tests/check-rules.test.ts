import { expect, test } from 'vitest';
import { checkFiles } from '../scripts/check-imports.mjs';

const messages = (path: string, text: string) => checkFiles([{ path, text }]).map((finding) => finding.message);

const REFUSED: [rule: string, path: string, text: string, says: RegExp][] = [
  ['protocol imports nothing of ours', 'core/protocol/a.ts', "import { b } from '../ports.ts';", /may not import/],
  ['world imports no adapter', 'core/world/a.ts', "import { b } from '../store/b.ts';", /may not import core\/store/],
  ['world imports no config', 'core/world/a.ts', "import type { C } from '../config.ts';", /may not import/],
  ['safety imports no port', 'core/safety/a.ts', "export * from '../ports.ts';", /may not import/],
  ['adapters do not import each other', 'core/store/a.ts', "import { b } from '../bus/b.ts';", /may not import/],
  ['adapters do not import the world', 'core/models/a.ts', "import { b } from '../world/b.ts';", /may not import/],
  ['the core imports no server', 'core/index.ts', "import { b } from '../server/app.ts';", /may not import/],
  ['a lazy import counts', 'core/world/a.ts', "export const f = () => import('../store/b.ts');", /may not import/],
  ['a type import counts', 'core/world/a.ts', "export type T = import('../store/b.ts').T;", /may not import/],
  ['the server imports no command', 'server/a.ts', "import { b } from '../cli/b.ts';", /may not import cli/],
  [
    'only the command root starts the server',
    'cli/serve.ts',
    "import { b } from '../server/app.ts';",
    /may not import/,
  ],
  ['the page imports protocol only', 'web/a.ts', "import { b } from '../core/config.ts';", /may not import/],
  ['the environment is read once', 'server/a.ts', 'export const a = process.env.HOME;', /process\.env/],
  ['the environment by destructuring', 'server/a.ts', 'const { env } = process; export { env };', /process\.env/],
  ['the environment by import', 'cli/a.ts', "import { env } from 'node:process'; export { env };", /process\.env/],
  ['programs start in named files', 'core/tools/a.ts', "import { spawn } from 'node:child_process';", /child_process/],
  ['programs without the prefix too', 'cli/a.ts', "import { spawn } from 'child_process';", /child_process/],
  ['requests leave through one file', 'core/models/a.ts', "await fetch('http://x');", /fetch belongs/],
  ['fetch handed on counts', 'cli/a.ts', 'export const c = { fetch };', /fetch belongs/],
  ['fetch of globalThis counts', 'cli/a.ts', 'export const c = globalThis.fetch;', /fetch belongs/],
  ['requests by node:http', 'server/a.ts', "import { request } from 'node:http';", /outbound/],
  ['patterns are made in one file', 'core/world/a.ts', 'export const f = (s: string) => new RegExp(s);', /patterns/],
  ['patterns without new too', 'server/a.ts', 'export const f = (s: string) => RegExp(s);', /patterns/],
  ['no code from text', 'core/tools/a.ts', "new Function('return 1')();", /never run/],
  ['the world has no clock', 'core/world/a.ts', 'export const a = Date.now();', /ports/],
  ['the world has no clock by new Date', 'core/world/a.ts', 'export const a = new Date();', /ports/],
  ['the world has no timers', 'core/world/a.ts', 'setTimeout(() => {}, 1);', /ports/],
  ['the world has no process', 'core/world/a.ts', 'export const a = process.pid;', /ports/],
  ['the world has no dice', 'core/world/a.ts', 'export const a = Math.random();', /ports/],
  ['the world imports nothing of Node', 'core/world/a.ts', "import { x } from 'node:timers/promises';", /ports/],
  ['no raw HTML in components', 'web/Some.svelte', '<p>{@html text}</p>', /@html/],
  [
    'component scripts are read',
    'web/Some.svelte',
    '<script lang="ts">import a from \'../core/parley.ts\';</script>',
    /may not/,
  ],
  ['no HTML by assignment', 'web/a.ts', "document.body.innerHTML = '';", /innerHTML/],
  ['no skipped tests', 'core/world/a.test.ts', "test.skip('x', () => {});", /hides tests/],
  ['no conditional tests', 'tests/a.test.ts', "describe.skipIf(true)('x', () => {});", /hides tests/],
  ['no single tests', 'tests/a.test.ts', "it.only('x', () => {});", /hides tests/],
  ['names say something', 'core/world/string-utils.ts', 'export const a = 1;', /says nothing/],
  ['files are in kebab-case', 'core/world/someThing.ts', 'export const a = 1;', /kebab-case/],
  ['files end before 500 lines', 'core/world/long.ts', 'export const a = 1;\n'.repeat(501), /501 lines/],
];

test.each(REFUSED)('refuses: %s', (_rule, path, text, says) => {
  expect(messages(path, text)).toEqual([expect.stringMatching(says)]);
});

const ALLOWED: [rule: string, path: string, text: string][] = [
  ['the composition root imports adapters', 'core/index.ts', "import { a } from './store/a.ts';"],
  ['adapters import ports and safety', 'core/store/a.ts', "import '../ports.ts'; import '../safety/b.ts';"],
  ['the page imports the mention grammar', 'web/a.ts', "import { a } from '../core/world/mentions.ts';"],
  ['the page fetches', 'web/a.ts', "export const a = fetch('/api');"],
  ['a parameter named fetch', 'cli/a.ts', 'export const a = (fetch: () => void) => fetch();'],
  ['a member named fetch', 'server/a.ts', 'export const a = (app: { fetch(): void }) => app.fetch();'],
  ['a date of a given time', 'core/world/a.ts', 'export const iso = (ms: number) => new Date(ms).toISOString();'],
  ['process without its environment', 'cli/a.ts', 'process.exitCode = 1;'],
  ['tests import what they like', 'core/world/a.test.ts', "import { b } from '../store/b.ts'; fetch('/');"],
  ['a literal pattern', 'server/a.ts', 'export const a = /x/.test("x");'],
];

test.each(ALLOWED)('lets pass: %s', (_rule, path, text) => {
  expect(messages(path, text)).toEqual([]);
});

test('names the line of a component where the fault is', () => {
  const text = '<script lang="ts">\n  const a = 1;\n</script>\n\n<p>{a}</p>\n{@html a}\n';
  expect(checkFiles([{ path: 'web/Some.svelte', text }])).toEqual([expect.objectContaining({ line: 6 })]);
});
