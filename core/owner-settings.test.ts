import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readOwnerSettings } from './owner-settings.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-settings-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));
const write = (text: string) => writeFileSync(join(dir, 'config.yaml'), text);
const fault = () => {
  try {
    readOwnerSettings(dir);
  } catch (error) {
    return String(error);
  }
  return '';
};

test('without a file, and with an empty one, nothing is set', () => {
  expect(readOwnerSettings(dir)).toEqual({ prices: {} });
  write('# later\n');
  expect(readOwnerSettings(dir)).toEqual({ prices: {} });
});

test('reads prices', () => {
  write('prices:\n  "my-model*": { input: 1, cachedInput: 0.1, output: 2.5 }\n');
  expect(readOwnerSettings(dir).prices).toEqual({ 'my-model*': { input: 1, cachedInput: 0.1, output: 2.5 } });
});

test.each([
  ['a word that is no key', 'price: {}\n', 'price'],
  ['a price that is no number', 'prices:\n  m: { input: cheap, output: 1 }\n', 'prices → m → input'],
  ['a price below nothing', 'prices:\n  m: { input: 1, output: -1 }\n', 'prices → m → output'],
  ['a price without output', 'prices:\n  m: { input: 1 }\n', 'prices → m → output'],
  ['a wrong word in a price', 'prices:\n  m: { input: 1, output: 1, inptu: 1 }\n', 'inptu'],
  ['a star in the middle', 'prices:\n  "a*b": { input: 1, output: 1 }\n', 'a*b'],
  ['a list', '- a\n', 'object'],
  ['broken text', 'prices: {\n', 'line'],
])('%s is refused with file and key', (_name, text, key) => {
  write(text);
  expect(fault()).toContain(join(dir, 'config.yaml'));
  expect(fault()).toContain(key);
});

test('a file that cannot be read is refused', () => {
  mkdirSync(join(dir, 'config.yaml'));
  expect(fault()).toContain('EISDIR');
});
