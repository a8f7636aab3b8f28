import { expect, test } from 'vitest';
import { type Approval, Approval as ApprovalSchema } from '../core/protocol/entities.ts';
import type { AnswerApproval } from '../core/protocol/requests.ts';
import { type ApproverOptions, createApprover, RUN_APPROVAL_MS } from './approver.ts';

const options = [
  { id: 'yes', label: 'Allow' },
  { id: 'no', label: 'Deny' },
];
function approval(id: string, more: Partial<Record<keyof Approval, unknown>> = {}): Approval {
  return ApprovalSchema.parse({
    id,
    worldId: 'w',
    chatId: 'c',
    turnId: 't',
    agentId: 'ann',
    kind: 'tool',
    title: id,
    message: id,
    questions: [{ id: 'q', header: 'Allow', question: id, options }],
    options,
    defaultOptionId: 'no',
    status: 'pending',
    createdAt: '2026-01-01T00:00:00.000Z',
    ...more,
  });
}
const ended = (of: Approval, status: Approval['status'], answer?: AnswerApproval): Approval => ({
  ...of,
  status,
  resolution: {
    optionId: answer?.optionId ?? null,
    by: 'me',
    at: of.createdAt,
    ...(answer?.text ? { text: answer.text } : {}),
  },
});

/** An approver over a server that takes the first answer to each approval, and a clock that the test moves. */
function open(mode: ApproverOptions['mode'], more: Partial<ApproverOptions> = {}) {
  const sent: [id: string, answer: AnswerApproval][] = [];
  const known = new Map<string, Approval>();
  const timers: { ms: number; run: () => void }[] = [];
  const decided: string[] = [];
  let asked = () => {};
  const approver = createApprover({
    mode,
    client: {
      async answer(_world, id, answer) {
        const now = known.get(id);
        if (!now) throw new Error(`nothing is known of ${id}`);
        if (now.status !== 'pending') return { accepted: false, reason: 'too late', approval: now };
        sent.push([id, answer]);
        const after = ended(now, answer.optionId === 'yes' ? 'answered' : 'denied', answer);
        known.set(id, after);
        return { accepted: true, approval: after };
      },
    },
    isOurs: async () => true,
    ask: async () => ({ optionId: 'yes' }),
    asked: () => asked(),
    decided: (of) => void decided.push(`${of.id} ${of.status}`),
    after(ms, run) {
      const timer = { ms, run };
      timers.push(timer);
      return () => void timers.splice(timers.indexOf(timer), 1);
    },
    now: () => Date.parse('2026-01-01T00:00:00.000Z'),
    signal: new AbortController().signal,
    ...more,
  });
  const see = (of: Approval) => {
    known.set(of.id, of);
    approver.see(of);
  };
  const whenAsked = () =>
    new Promise<void>((resolve) => {
      asked = resolve;
    });
  return { approver, see, sent, known, timers, decided, whenAsked };
}

test('yes gives what can be given with yes, once, however often it is seen', async () => {
  const { approver, see, sent, decided } = open('yes');
  see(approval('a'));
  approver.see(approval('a'));
  expect(await approver.rest()).toBe(true);
  approver.see(approval('a'));
  expect(await approver.rest()).toBe(false);
  expect(sent).toEqual([['a', { optionId: 'yes', chatId: 'c' }]]);
  expect(decided).toEqual(['a answered']);
});

test('yes answers no question and repeats nothing whose outcome is unknown', async () => {
  const { approver, see, sent } = open('yes');
  see(approval('a', { kind: 'ask_user', options: [{ id: 'red', label: 'Red' }] }));
  see(approval('b', { kind: 'unknown_outcome', options: [{ id: 'retry', label: 'Again' }] }));
  await approver.rest();
  expect(sent.map(([, answer]) => answer)).toEqual([
    expect.objectContaining({ skipped: true }),
    expect.objectContaining({ skipped: true }),
  ]);
  expect(approver.decisions().map(({ status }) => status)).toEqual(['denied', 'denied']);
});

test('no denies', async () => {
  const { approver, see, sent } = open('no');
  see(approval('a'));
  await approver.rest();
  expect(sent).toEqual([['a', { optionId: 'no', chatId: 'c' }]]);
});

test('leaves alone what this run did not lead to', async () => {
  const { approver, see, sent } = open('yes', { isOurs: async ({ id }) => id === 'ours' });
  see(approval('theirs'));
  see(approval('ours'));
  await approver.rest();
  expect(sent.map(([id]) => id)).toEqual(['ours']);
  see(ended(approval('theirs'), 'denied'));
  await approver.rest();
  expect(approver.decisions().map(({ id }) => id)).toEqual(['ours']);
});

test('denies after five minutes what nobody answered, and takes its timer away where somebody did', async () => {
  const { approver, see, sent, timers, whenAsked } = open('wait');
  const shown = whenAsked();
  see(approval('a'));
  await shown;
  expect(timers.map(({ ms }) => ms)).toEqual([RUN_APPROVAL_MS]);
  expect(RUN_APPROVAL_MS).toBe(300_000);
  timers[0]?.run();
  await approver.rest();
  expect(sent).toEqual([['a', { optionId: 'no', chatId: 'c', text: expect.stringContaining('in time') }]]);
  expect(timers).toEqual([]);
});

test('leaves the time limit of a world to the server', async () => {
  const { approver, see, known, sent, timers, whenAsked } = open('wait');
  const shown = whenAsked();
  const limited = approval('a', { expiresAt: '2026-01-01T01:00:00.000Z' });
  see(limited);
  await shown;
  expect(timers[0]?.ms).toBeGreaterThan(3_600_000);
  known.set('a', ended(limited, 'expired'));
  timers[0]?.run();
  await approver.rest();
  expect(sent).toEqual([]);
  expect(approver.decisions()).toMatchObject([{ status: 'expired' }]);
});

test('takes what another person decides meanwhile', async () => {
  const { approver, see, sent, decided, whenAsked } = open('wait');
  const shown = whenAsked();
  see(approval('a'));
  await shown;
  see(ended(approval('a'), 'answered'));
  await approver.rest();
  expect(sent).toEqual([]);
  expect(decided).toEqual(['a answered']);
});

test('decides nothing after a stop', async () => {
  const stop = new AbortController();
  const { approver, see, sent, whenAsked } = open('wait', { signal: stop.signal });
  const shown = whenAsked();
  see(approval('a'));
  await shown;
  stop.abort();
  see(approval('b'));
  await approver.rest();
  expect(sent).toEqual([]);
  expect(approver.decisions()).toEqual([]);
});

test('tells the fault of an answer that could not be sent', async () => {
  const { approver } = open('yes');
  approver.see(approval('unknown'));
  await expect(approver.rest()).rejects.toThrow('nothing is known of unknown');
});
