import { expect, test } from 'vitest';
import { compilePattern, type Pattern } from './patterns.ts';

function compiled(source: string): Pattern {
  const result = compilePattern(source);
  if (!result.ok) throw new Error(result.problem);
  return result.pattern;
}

test('matches anywhere in the text and hands out the groups', () => {
  const pattern = compiled('(?i)draft: (\\w+)( now)?');
  expect(pattern.test('please DRAFT: this')).toBe(true);
  expect(pattern.groups('please DRAFT: this')).toEqual(['DRAFT: this', 'this', '']);
  expect(pattern.groups('nothing here')).toBeNull();
});

test.each([
  ['(?=a)b', 'look-around'],
  ['(?<!a)b', 'look-around'],
  ['(a)\\1', 'back-references'],
  ['(?P<n>a)\\k<n>', 'back-references'],
  ['a(', 'missing closing )'],
  ['[', 'missing closing ]'],
  ['((a{100}){100}){10}', 'repeat'],
  ['x'.repeat(1001), 'longer than'],
])('refuses %s at load and says why', (source, why) => {
  const result = compilePattern(source);
  expect(result.ok ? '' : result.problem).toContain(why);
});

test('takes linear time on the classic catastrophic pattern', () => {
  const started = performance.now();
  expect(compiled('^(a+)+$').test(`${'a'.repeat(50_000)}!`)).toBe(false);
  expect(performance.now() - started).toBeLessThan(2000);
});
