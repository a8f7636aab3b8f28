import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { EMPTY_ROUTING, type Message, Message as MessageSchema, type Routing } from '../core/protocol/entities.ts';
import type { Io } from './io.ts';
import { createRoomView } from './room-view.ts';

function open(live: boolean, isHeld = () => false) {
  const io: Io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  const text = (stream: Io['stdout']) => String((stream as PassThrough).read() ?? '');
  const view = createRoomView(io, { nameOf: (id) => id.toUpperCase(), live, isHeld });
  return { view, out: () => text(io.stdout), err: () => text(io.stderr) };
}

function message(seq: number, content: string, more: Partial<Record<keyof Message, unknown>> = {}): Message {
  return MessageSchema.parse({
    id: `m${seq}`,
    worldId: 'w',
    chatId: 'c',
    seq,
    parentId: null,
    sender: { kind: 'agent', id: 'ann', name: 'ANN' },
    content,
    routing: EMPTY_ROUTING,
    status: 'complete',
    createdAt: '2026-01-01T00:00:00.000Z',
    ...more,
  });
}
const delta = (turnId: string, agentId: string, index: number, text: string, runId = 'r1') => ({
  turnId,
  agentId,
  runId,
  index,
  text,
});

test('prints agents to standard output and everything else to standard error', () => {
  const { view, out, err } = open(false);
  view.message(message(1, 'done'));
  view.message(message(2, 'Ann reached her limit', { sender: { kind: 'system', id: 'system', name: 'System' } }));
  expect(out()).toBe('ANN: done\n');
  expect(err()).toBe('Ann reached her limit\n');
});

test('shows whom a message woke and why, and what it ignored', () => {
  const { view, err } = open(false);
  const routing = {
    woke: [{ agentId: 'bob', reason: 'address' }],
    ignored: [{ text: '@bbo', reason: 'unknown', suggestion: 'bob' }],
  } as unknown as Routing;
  view.message(message(1, '@bob go', { routing }));
  expect(err()).toBe('→ bob (addressed) · not woken: @bbo (no such agent; did you mean @bob?)\n');
});

test('streams an answer once: the final message adds only what is missing', () => {
  const { view, out } = open(true);
  view.delta(delta('t1', 'ann', 0, 'Hel'));
  view.delta(delta('t1', 'ann', 1, 'lo'));
  view.message(message(1, 'Hello, world', { turnId: 't1' }));
  view.settled();
  expect(out()).toBe('ANN: Hello, world\n');
});

test('keeps one voice together while another speaks, then shows the other whole', () => {
  const { view, out } = open(true);
  view.delta(delta('t1', 'ann', 0, 'one '));
  view.delta(delta('t2', 'bob', 0, 'uno '));
  view.delta(delta('t1', 'ann', 1, 'two'));
  view.delta(delta('t2', 'bob', 1, 'due'));
  const bob = { kind: 'agent', id: 'bob', name: 'BOB' };
  view.message(message(1, 'uno due', { turnId: 't2', sender: bob }));
  view.message(message(2, 'one two', { turnId: 't1' }));
  expect(out()).toBe('ANN: one two\nBOB: uno due\n');
});

test('starts anew when the turn is run again', () => {
  const { view, out } = open(true);
  view.delta(delta('t1', 'ann', 0, 'half an ans'));
  view.delta(delta('t1', 'ann', 0, 'whole', 'r2'));
  view.message(message(1, 'whole', { turnId: 't1' }));
  expect(out()).toBe('ANN: half an ans\nANN: whole\n');
});

test('prints the published text where it differs from the streamed one', () => {
  const { view, out } = open(true);
  view.delta(delta('t1', 'ann', 0, '<world>DONE</world> bye'));
  view.message(message(1, 'bye', { turnId: 't1' }));
  expect(out()).toBe('ANN: <world>DONE</world> bye\nANN: bye\n');
});

test('does not print a piece that comes after its message', () => {
  const { view, out } = open(true);
  view.message(message(1, 'whole', { turnId: 't1' }));
  view.delta(delta('t1', 'ann', 4, 'late'));
  view.settled();
  expect(out()).toBe('ANN: whole\n');
});

test('says that a text was cut short by a stop', () => {
  const { view, out } = open(true);
  view.delta(delta('t1', 'ann', 0, 'so f'));
  view.message(message(1, 'so far', { turnId: 't1', status: 'stopped' }));
  expect(out()).toBe('ANN: so far [stopped]\n');
});

test('never lets an agent drive the terminal, in its text or its name', () => {
  const { view, out } = open(false);
  view.message(message(1, '\u001b[2Jgone', { sender: { kind: 'agent', id: 'ann', name: 'A\u001b[0m\u202e' } }));
  expect(out()).toBe('A\\x1b[0m\\u{202e}: \\x1b[2Jgone\n');
});

test('shows answers whole while something is asked, also one that was half said', () => {
  let held = false;
  const { view, out } = open(true, () => held);
  view.delta(delta('t1', 'ann', 0, 'one '));
  held = true;
  view.delta(delta('t1', 'ann', 1, 'two '));
  view.delta(delta('t2', 'bob', 0, 'uno'));
  expect(out()).toBe('ANN: one \n');
  view.message(message(1, 'one two three', { turnId: 't1' }));
  expect(out()).toBe('ANN: one two three\n');
  held = false;
  view.delta(delta('t2', 'bob', 1, ' due'));
  expect(out()).toBe('BOB: uno due');
});

test('says which tool an agent runs, on one line that it cannot break', () => {
  const { view, out, err } = open(true);
  view.tool({ agentId: 'ann', tool: 'a\nb', state: 'started' });
  view.tool({ agentId: 'ann', tool: 'a', state: 'failed' });
  expect({ out: out(), err: err() }).toEqual({ out: '', err: 'ANN: a\\nb runs\nANN: a failed\n' });
});
