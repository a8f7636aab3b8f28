import { describe, expect, test } from 'vitest';
import { type Approval, Approval as ApprovalSchema, type Question } from '../core/protocol/entities.ts';
import { createDesk, keysOf } from './approval-desk.ts';

const allow = {
  id: 'allow',
  header: 'Allow',
  question: 'Do it?',
  options: [
    { id: 'yes', label: 'Allow' },
    { id: 'no', label: 'Deny' },
  ],
  freeText: true,
};

function approval(id: string, more: Partial<Record<keyof Approval, unknown>> = {}, questions: Question[] = [allow]) {
  return ApprovalSchema.parse({
    id,
    worldId: 'w',
    chatId: 'c',
    turnId: 't',
    agentId: 'ann',
    kind: 'tool',
    title: 'Do it?',
    message: 'it is done',
    questions,
    options: questions[0]?.options ?? [],
    defaultOptionId: 'no',
    status: 'pending',
    createdAt: '2026-01-01T00:00:00.000Z',
    ...more,
  });
}

/** What a line typed at the prompt of the only approval does. */
function readAt(of: Approval, line: string) {
  const desk = createDesk();
  desk.see(of);
  const key = desk.current()?.key ?? '';
  return desk.read(key, line);
}
const answerAt = (of: Approval, line: string) => {
  const reading = readAt(of, line);
  return reading?.kind === 'answer' ? reading.answer : reading?.kind;
};

const size: Question = {
  id: 'size',
  header: 'Size',
  question: 'How big?',
  options: [
    { id: '2', label: 'small' },
    { id: '1', label: 'big' },
  ],
};
const why: Question = { id: 'why', header: 'Why', question: 'Why?', options: [], freeText: true };

describe('at the prompt of an approval', () => {
  test.each([
    ['y', { optionId: 'yes', chatId: 'c' }],
    ['Y ', { optionId: 'yes', chatId: 'c' }],
    ['1', { optionId: 'yes', chatId: 'c' }],
    ['n', { optionId: 'no', chatId: 'c' }],
    ['2', { optionId: 'no', chatId: 'c' }],
    ['n not on a Friday', { optionId: 'no', chatId: 'c', text: 'not on a Friday' }],
    ['3', 'hint'],
    ['0', 'message'],
    ['yes', 'message'],
    ['no', 'message'],
    ['yes, do it', 'message'],
    ['nothing', 'message'],
    ['y please', 'message'],
    ['1 of them is enough', 'message'],
    ['approved', 'message'],
    ['ok', 'message'],
  ])('%j is %j', (line, result) => {
    expect(answerAt(approval('a'), line)).toEqual(result);
  });

  test('an unknown outcome takes the result behind its number, and no y', () => {
    const options = ['retry', 'skip', 'result'].map((id) => ({ id, label: id }));
    const of = approval('a', { kind: 'unknown_outcome', defaultOptionId: null }, [{ ...allow, options }]);
    expect(answerAt(of, '1')).toEqual({ optionId: 'retry', chatId: 'c' });
    expect(answerAt(of, '3')).toBe('hint');
    expect(answerAt(of, '3 it was sent')).toEqual({ optionId: 'result', chatId: 'c', text: 'it was sent' });
    expect(answerAt(of, 'y')).toBe('hint');
    expect(answerAt(of, 'n')).toEqual({ skipped: true, chatId: 'c' });
  });
});

describe('at the prompt of a question', () => {
  const one = (question: Question) => approval('a', { kind: 'ask_user', defaultOptionId: null }, [question]);

  test('a number is the option that the card shows by it, whatever ids the agent chose', () => {
    expect(answerAt(one(size), '1')).toMatchObject({ answers: [{ questionId: 'size', optionIds: ['2'] }] });
  });

  test('other text stays a message where only options are taken', () => {
    expect(answerAt(one(size), 'the second')).toBe('message');
    expect(answerAt(one(size), '3')).toBe('hint');
    expect(answerAt(one(size), 'y')).toBe('hint');
    expect(answerAt(one(size), 'n none of these')).toEqual({ skipped: true, chatId: 'c', text: 'none of these' });
  });

  test('own words are the answer where they are welcome, also those that would decide elsewhere', () => {
    for (const text of ['because', 'n', 'y', '7', 'n is odd']) {
      expect(answerAt(one(why), text)).toMatchObject({ answers: [{ questionId: 'why', optionIds: [], text }] });
    }
    expect(answerAt(one(why), '/skip too private')).toEqual({ skipped: true, chatId: 'c', text: 'too private' });
  });

  test('several questions come one after the other and are answered together', () => {
    const desk = createDesk();
    desk.see(approval('a', { kind: 'ask_user' }, [size, why]));
    const first = desk.current();
    expect(desk.read(first?.key ?? '', '2')).toEqual({ kind: 'next' });
    const second = desk.current();
    expect(second?.question.id).toBe('why');
    expect(desk.read(first?.key ?? '', '1')).toBeNull();
    expect(desk.read(second?.key ?? '', 'room for more')).toMatchObject({
      answer: {
        chatId: 'c',
        answers: [
          { questionId: 'size', optionIds: ['1'] },
          { questionId: 'why', optionIds: [], text: 'room for more' },
        ],
      },
    });
  });
});

test('a line at the prompt of one approval never decides another', () => {
  const desk = createDesk();
  desk.see(approval('a'));
  const key = desk.current()?.key ?? '';
  desk.see(approval('b'));
  expect(desk.see(approval('a', { status: 'cancelled' }))).toBe('gone');
  expect(desk.current()?.approval.id).toBe('b');
  expect(desk.read(key, 'y')).toBeNull();
});

test('numbers stay with their approval, and a stale list brings nothing back', () => {
  const desk = createDesk();
  desk.see(approval('a'));
  desk.see(approval('b'));
  desk.see(approval('a', { status: 'answered' }));
  expect(desk.see(approval('a'))).toBe('known');
  desk.see(approval('c'));
  expect(desk.pending().map(({ number, approval: { id } }) => `${number}${id}`)).toEqual(['2b', '3c']);
  expect(desk.byNumber(1)).toBeNull();
  desk.bringForward('c');
  expect(desk.current()).toMatchObject({ number: 3 });
});

test('a prompt says what it takes', () => {
  expect(keysOf({ approval: approval('a'), question: allow })).toBe('y, n, n REASON, 1-2');
  const ask = approval('a', { kind: 'ask_user' }, [why]);
  expect(keysOf({ approval: ask, question: why })).toBe('your words, /skip');
});
