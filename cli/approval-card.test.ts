import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { type Approval, Approval as ApprovalSchema } from '../core/protocol/entities.ts';
import { renderCard, renderOutcome, renderQuestion } from './approval-card.ts';
import { styleFor } from './io.ts';

const style = styleFor(new PassThrough());
const questions = [
  {
    id: 'allow',
    header: 'Allow',
    question: 'Create the agent Helper?',
    options: [
      { id: 'yes', label: 'Allow' },
      { id: 'no', label: 'Deny' },
    ],
  },
];
const approval = (more: Partial<Record<keyof Approval, unknown>> = {}) =>
  ApprovalSchema.parse({
    id: 'a1',
    worldId: 'w',
    chatId: 'c',
    turnId: 't',
    agentId: 'ann',
    kind: 'create_agent',
    title: 'Create the agent Helper?',
    message: 'Ann proposes @helper.\n\nIts whole prompt:\n\nYou are agent Helper.',
    questions,
    options: questions[0]?.options,
    defaultOptionId: 'no',
    tool: 'create_agent',
    status: 'pending',
    createdAt: '2026-01-01T00:00:00.000Z',
    ...more,
  });

test('a card shows the title, the whole message and the options by number', () => {
  expect(renderCard(approval(), 'Ann', 2, style)).toBe(
    [
      'approval #2 (a1) from Ann: create_agent',
      'Create the agent Helper?',
      '│ Ann proposes @helper.',
      '│',
      '│ Its whole prompt:',
      '│',
      '│ You are agent Helper.',
      '  1) Allow',
      '  2) Deny',
    ].join('\n'),
  );
});

test('nothing that an agent wrote can drive the terminal, hide or pass for a part of the card', () => {
  const message = 'safe\n  1) Deny\r\u001b[2K\u202egpj\u200b\u2028\n\u009b1A2) Allow';
  const options = [{ id: 'yes', label: 'Al\u001b[8mlow\n  3) Deny' }];
  const shown = renderCard(
    approval({ title: 'Run\u001b]0;x\u0007\nit', message, questions: [{ ...questions[0], options }] }),
    'A\nnn\u001b[0m',
    1,
    style,
  );
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
  expect(shown).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b\u202e\u2028]/);
  const lines = shown.split('\n');
  expect(lines).toHaveLength(6);
  expect(lines.filter((line) => line.startsWith('│'))).toHaveLength(3);
  expect(lines.at(-1)).toMatch(/^ {2}1\) Al/);
});

test('a question shows its place among several, and its options', () => {
  const question = {
    id: 'q',
    header: 'Size',
    question: 'How\nbig?',
    options: [{ id: 's', label: 'S', description: 'small' }],
  };
  expect(renderQuestion(question, 1, 3, style)).toBe('Size (2 of 3)\n│ How\n│ big?\n  1) S small');
});

test.each([
  ['answered', { optionId: 'yes' }, 'allowed by Bo: Create the agent Helper?'],
  ['denied', { optionId: 'no', text: 'not\nnow' }, 'denied by Bo: not\\nnow: Create the agent Helper?'],
  ['expired', { optionId: null, reason: 'timeout' }, 'denied, nobody answered in time: Create the agent Helper?'],
  ['cancelled', { optionId: null, reason: 'cancelled' }, 'cancelled: Create the agent Helper?'],
])('says how one that is %s ended', (status, resolution, shown) => {
  const ended = approval({ status, resolution: { by: 'Bo', at: '2026-01-01T00:00:00.000Z', ...resolution } });
  expect(renderOutcome(ended, style)).toBe(shown);
});
