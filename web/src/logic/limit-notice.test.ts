import { expect, it } from 'vitest';
import type { Message, Turn } from '../../../core/protocol/entities.ts';
import { answer, message, turn } from '../testing/fixtures.ts';
import { openLimits } from './limit-notice.ts';

const notice = (seq: number): Message =>
  message(seq, {
    sender: { kind: 'system', id: 'system', name: 'System' },
    notice: { kind: 'limit', limit: 'turnLimit', used: 5, max: 5, action: 'continue' },
    createdAt: '2026-01-01T10:05:00.000Z',
  });
const open = (messages: Message[], turns: Turn[] = []): string[] => [...openLimits(messages, turns)];

it('a limit is open until a person speaks', () => {
  expect(open([message(1), notice(2), answer(3, 'writer', 't')])).toEqual(['m2']);
  expect(open([message(1), notice(2), message(3)])).toEqual([]);
});

it('a limit is closed when what it held back goes on, also after a reload', () => {
  const later = turn('t2', 'queued', { queuedAt: '2026-01-01T10:06:00.000Z' });
  expect(open([message(1), notice(2)], [turn('t1', 'done'), later])).toEqual([]);
});

it('a new limit opens a way of its own', () => {
  const later = turn('t2', 'done', { queuedAt: '2026-01-01T10:06:00.000Z' });
  const second = { ...notice(4), createdAt: '2026-01-01T10:07:00.000Z' };
  expect(open([message(1), notice(2), answer(3, 'writer', 't2'), second], [later])).toEqual(['m4']);
});
