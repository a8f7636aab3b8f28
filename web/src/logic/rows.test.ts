import { describe, expect, it } from 'vitest';
import { answer, message } from '../testing/fixtures.ts';
import { messageRows } from './rows.ts';

const on = (seq: number, day: string) => message(seq, { createdAt: `2026-01-${day}T12:00:00.000Z` });

describe('rows', () => {
  it('begin a day where the one before is of another', () => {
    const rows = messageRows([on(1, '01'), on(2, '01'), on(3, '02')]);
    expect(rows.map(({ startsDay }) => startsDay)).toEqual([true, false, true]);
  });

  it('stay the same objects when messages come below, or older ones above', () => {
    const messages = [on(3, '02'), on(4, '02')];
    const before = messageRows(messages);
    const below = messageRows([...messages, on(5, '02')], before);
    expect([below[0] === before[0], below[1] === before[1], below.length]).toEqual([true, true, 3]);
    const above = messageRows([on(1, '01'), on(2, '01'), ...messages], before);
    expect([above[2] === before[0], above[3] === before[1], above.length]).toEqual([true, true, 4]);
  });

  it('are the same whether made at once or on top of others', () => {
    const messages = [on(1, '01'), on(2, '02'), on(3, '02'), answer(4, 'planner', 't')];
    const changed = messages.map((one) => (one.seq === 2 ? { ...one, content: 'edited' } : one));
    for (const [first, then] of [
      [messages.slice(2), messages],
      [messages.slice(0, 2), messages],
      [messages, changed],
      [messages, messages.slice(1, 3)],
      [[], messages],
      [messages, []],
    ] as const) {
      expect(messageRows(then, messageRows(first))).toEqual(messageRows(then));
    }
  });
});
