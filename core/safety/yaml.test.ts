import { expect, test } from 'vitest';
import { parseForeignYaml } from './yaml.ts';

test('reads lists, maps and block text', () => {
  expect(parseForeignYaml('- say: |\n    one\n    two\n', 1000)).toEqual({ ok: true, value: [{ say: 'one\ntwo\n' }] });
});

test.each([
  ['aliases', 'a: &x [1]\nb: *x\n', 'line 2: aliases'],
  ['a billion laughs', 'a: &a [1]\nb: &b [*a, *a]\nc: [*b, *b]\n', 'aliases'],
  ['unknown tags', 'a: !!js/function "x"\n', 'line 1'],
  ['repeated keys', 'a: 1\na: 2\n', 'line 2'],
  ['broken text', 'a: [1\n', 'line'],
  ['two documents', 'a: 1\n---\nb: 2\n', 'line'],
  ['too many bytes', `a: ${'é'.repeat(600)}`, 'larger than 1000 bytes'],
])('refuses %s and names the place', (_name, text, problem) => {
  const result = parseForeignYaml(text, 1000);
  expect(result.ok ? '' : result.problem).toContain(problem);
});

test('refuses nesting that would exhaust the stack', () => {
  expect(parseForeignYaml('['.repeat(20_000), 200_000).ok).toBe(false);
});

test('keeps a key named __proto__ as plain content', () => {
  const result = parseForeignYaml('{"__proto__": {"polluted": true}}', 1000);
  expect(result.ok).toBe(true);
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});
