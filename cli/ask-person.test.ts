import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { Approval } from '../core/protocol/entities.ts';
import { askOnTerminal } from './ask-person.ts';
import { type Io, styleFor } from './io.ts';

const options = [
  { id: 'yes', label: 'Allow' },
  { id: 'no', label: 'Deny' },
];
const approval = Approval.parse({
  id: 'a',
  worldId: 'w',
  chatId: 'c',
  turnId: 't',
  agentId: 'ann',
  kind: 'tool',
  title: 'Do it?',
  message: 'it is done',
  questions: [{ id: 'q', header: 'Allow', question: 'Do it?', options }],
  options,
  defaultOptionId: 'no',
  status: 'pending',
  createdAt: '2026-01-01T00:00:00.000Z',
});
const never = new AbortController().signal;

function open() {
  const stdin = new PassThrough();
  const stderr = new PassThrough();
  const io: Io = { stdin, stdout: new PassThrough(), stderr };
  let err = '';
  const told = (text: string) =>
    new Promise<void>((resolve) => {
      stderr.on('data', () => err.includes(text) && resolve());
    });
  stderr.on('data', (chunk) => {
    err += String(chunk);
  });
  return { person: askOnTerminal(io, styleFor(stderr)), stdin, told };
}

test('a line that was typed before the question decides nothing', async () => {
  const { person, stdin, told } = open();
  const unused = told('was not used');
  stdin.write('y\n');
  await unused;
  const answer = person.ask(approval, never);
  stdin.write('n too early\n');
  expect(await answer).toEqual({ optionId: 'no', chatId: 'c', text: 'too early' });
  person.close();
});

test('asks again after words that decide nothing', async () => {
  const { person, stdin } = open();
  const answer = person.ask(approval, never);
  stdin.write('yes\n3\n1\n');
  expect(await answer).toEqual({ optionId: 'yes', chatId: 'c' });
  person.close();
});

test('gives up where the input ends or the approval is decided elsewhere', async () => {
  const { person, stdin } = open();
  const gone = new AbortController();
  const given = person.ask(approval, gone.signal);
  gone.abort(new Error('decided elsewhere'));
  await expect(given).rejects.toThrow('decided elsewhere');
  const last = person.ask(approval, never);
  stdin.end();
  expect(await last).toMatchObject({ skipped: true });
  expect(await person.ask(approval, never)).toMatchObject({ skipped: true });
});
