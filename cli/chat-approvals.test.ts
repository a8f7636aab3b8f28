import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { type Approval, Approval as ApprovalSchema } from '../core/protocol/entities.ts';
import type { AnswerApproval } from '../core/protocol/requests.ts';
import { createChatApprovals } from './chat-approvals.ts';
import { openConsole } from './chat-console.ts';
import { type Io, styleFor } from './io.ts';

const options = [
  { id: 'yes', label: 'Allow' },
  { id: 'no', label: 'Deny' },
];
const approval = (id: string, status: Approval['status'] = 'pending') =>
  ApprovalSchema.parse({
    id,
    worldId: 'w',
    chatId: 'c',
    turnId: 't',
    agentId: 'ann',
    kind: 'tool',
    title: `Do ${id}?`,
    message: id,
    questions: [{ id: 'q', header: 'Allow', question: id, options }],
    options,
    defaultOptionId: 'no',
    status,
    createdAt: '2026-01-01T00:00:00.000Z',
  });

/** A conversation on a terminal whose keys the test presses; the server takes every answer. */
function open() {
  const stdin = new PassThrough();
  const io: Io = { stdin, stdout: new PassThrough(), stderr: new PassThrough() };
  const style = styleFor(io.stderr);
  const console = openConsole(io, style, true);
  const sent: [id: string, answer: AnswerApproval][] = [];
  const client = {
    async answer(_world: string, id: string, answer: AnswerApproval) {
      sent.push([id, answer]);
      return { accepted: true, approval: approval(id, 'answered') };
    },
  };
  const approvals = createChatApprovals({ client, io, style, console, nameOf: (id) => id });
  const lines = console.lines();
  return {
    approvals,
    console,
    sent,
    press: (keys: string) => void stdin.write(keys),
    async typed() {
      const { value } = await lines.next();
      if (!value) throw new Error('the input has ended');
      return value;
    },
    err: () => String((io.stderr as PassThrough).read() ?? ''),
  };
}
type Open = ReturnType<typeof open>;

/** Resolves when the keys stand on the line. */
async function until(ready: () => boolean): Promise<void> {
  while (!ready()) await new Promise((resolve) => setImmediate(resolve));
}

async function enter({ press, typed }: Open, keys: string) {
  press(`${keys}\r`);
  return typed();
}

test('a line counts for the approval that its prompt showed', async () => {
  const room = open();
  room.approvals.present();
  room.approvals.see(approval('a'));
  const { text, asked } = await enter(room, 'y');
  expect(await room.approvals.take(asked ?? '', text)).toBe(true);
  expect(room.sent).toEqual([['a', { optionId: 'yes', chatId: 'c' }]]);
  expect(room.err()).toContain('Do a?');
  room.console.close();
});

test('what was being typed when the approval came is a message', async () => {
  const room = open();
  room.approvals.present();
  room.press('y');
  await until(room.console.isTyping);
  room.approvals.see(approval('a'));
  expect(await enter(room, '')).toEqual({ text: 'y', asked: null });
  room.console.close();
});

test('a line entered while no prompt stood there is a message, even if it is read after the card', async () => {
  const room = open();
  room.approvals.present();
  room.press('make one\ry\r');
  expect(await room.typed()).toEqual({ text: 'make one', asked: null });
  room.approvals.see(approval('a'));
  expect(await room.typed()).toEqual({ text: 'y', asked: null });
  room.console.close();
});

test('a line at the prompt of an approval that ended meanwhile is neither decision nor message', async () => {
  const room = open();
  room.approvals.see(approval('a'));
  room.press('n because');
  await until(room.console.isTyping);
  room.approvals.see(approval('a', 'cancelled'));
  room.approvals.see(approval('b'));
  const { text, asked } = await enter(room, '');
  expect(asked).not.toBeNull();
  expect(await room.approvals.take(asked ?? '', text)).toBe(true);
  expect(room.sent).toEqual([]);
  expect(room.err()).toContain('waits no longer');
  room.console.close();
});
