import { expect, it } from 'vitest';
import { approval, decided } from '../testing/fixtures.ts';
import { answersFrom, argsText, decisionOf, numbered } from './approval.ts';

const question = (id: string, ...options: string[]) => ({
  id,
  header: id,
  question: `${id}?`,
  options: options.map((option) => ({ id: option, label: option })),
});

it('shows what is invisible in the arguments as code points', () => {
  expect(argsText(approval('a', { args: { path: 'a\u202egpj.exe' } }))).toContain('a\\u{202e}gpj.exe');
});

it('numbers options through all questions and stops at nine', () => {
  const all = numbered([question('one', 'a', 'b'), question('two', ...'cdefghijk')]);
  expect(all.map(({ options }) => options.map(({ key }) => key))).toEqual([
    [1, 2],
    [3, 4, 5, 6, 7, 8, 9, 0, 0],
  ]);
});

it('sends an option or words for every question, and names the first that has neither', () => {
  const questions = [question('one', 'a'), question('two')];
  const one = { one: { optionId: 'a', text: '' } };
  expect(answersFrom(questions, { ...one, two: { optionId: null, text: ' ' } })).toEqual({ missing: 'two' });
  expect(answersFrom(questions, { ...one, two: { optionId: null, text: 'blue' } })).toEqual({
    answers: [
      { questionId: 'one', optionIds: ['a'] },
      { questionId: 'two', optionIds: [], text: 'blue' },
    ],
  });
});

it('tells who decided what in one line', () => {
  expect(decisionOf(decided('a', 'answered'))).toBe('Owner allowed: Create Scout');
  const resolution = { optionId: 'no', by: 'Ann', at: '2026-01-01T10:00:00.000Z', text: 'too many' };
  expect(decisionOf(approval('a', { status: 'denied', resolution }))).toBe('Ann denied: Create Scout (too many)');
  expect(decisionOf(approval('a', { status: 'cancelled' }))).toBe('Cancelled: Create Scout');
});
