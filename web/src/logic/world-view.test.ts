import { describe, expect, it } from 'vitest';
import type { WorldEvent } from '../../../core/protocol/events.ts';
import type { MessageId } from '../../../core/protocol/ids.ts';
import { agent, answer, approval, chat, decided, delta, detail, message, stored, turn } from '../testing/fixtures.ts';
import { agentStates, isBusy } from './agent-state.ts';
import { emptyRoom, isOneBranch, withNewestPage, withPending, withTurns } from './room.ts';
import { liveTurns, messageRows } from './rows.ts';
import { reduceView, viewOf, type WorldView } from './world-view.ts';

function opened(): WorldView {
  const view = viewOf(detail([agent('planner'), agent('writer')], [chat('c1'), chat('c2')]));
  return { ...view, room: withNewestPage(emptyRoom('c1'), { messages: [message(1)], next: null }) };
}
const play = (events: readonly WorldEvent[], view = opened()): WorldView => events.reduce(reduceView, view);
const stateOf = (view: WorldView, id: string): string | undefined =>
  agentStates(view.agents, view.room, view.live).get(id)?.activity;

describe('a stream', () => {
  it('grows by its pieces and is replaced by the message', () => {
    const running = play([
      stored('turn.started', { turn: turn('t1', 'running') }),
      delta('t1', 'r', 0, 'Hel'),
      delta('t1', 'r', 1, 'lo'),
    ]);
    expect(running.live.get('t1')?.text).toBe('Hello');
    expect(stateOf(running, 'planner')).toBe('writing');
    const said = play(
      [stored('message.created', { message: answer(2, 'planner', 't1', { content: 'Hello!' }) })],
      running,
    );
    expect(said.live.size).toBe(0);
    expect(said.room?.messages.map(({ content }) => content)).toEqual(['message 1', 'Hello!']);
  });

  it('takes a piece that comes twice once', () => {
    expect(
      play([delta('t1', 'r', 0, 'a'), delta('t1', 'r', 1, 'b'), delta('t1', 'r', 1, 'b')]).live.get('t1')?.text,
    ).toBe('ab');
  });

  it('shows the newest execution only, whatever comes late from an older one', () => {
    const view = play([
      delta('t1', 'r1', 0, 'old'),
      delta('t1', 'r2', 0, 'new'),
      delta('t1', 'r1', 1, ' late'),
      delta('t1', 'r1', 0, 'old'),
    ]);
    expect(view.live.get('t1')?.text).toBe('new');
  });

  it('waits for the beginning when it joins in the middle', () => {
    const view = play([delta('t1', 'r', 7, 'dle')]);
    expect(view.live.size).toBe(0);
    expect(play([delta('t1', 'r', 0, 'the whole mid'), delta('t1', 'r', 8, 'dle')], view).live.get('t1')?.text).toBe(
      'the whole middle',
    );
  });

  it('keeps thoughts and words apart when all so far is told again', () => {
    const view = play([
      delta('t1', 'r', 0, 'hm', 'reasoning'),
      delta('t1', 'r', 1, 'Yes'),
      delta('t1', 'r', 0, 'hm', 'reasoning'),
      delta('t1', 'r', 0, 'Yes'),
      delta('t1', 'r', 2, '!'),
    ]);
    expect(view.live.get('t1')).toMatchObject({ reasoning: 'hm', text: 'Yes!' });
  });

  it('leaves no trace when a piece comes after the end', () => {
    const view = play([stored('turn.done', { turn: turn('t1', 'done') }), delta('t1', 'r', 0, 'ghost')]);
    expect(view.live.size).toBe(0);
  });

  it('of another chat is kept for when that chat is opened', () => {
    const other = { ...delta('t9', 'r', 0, 'there'), chat: 'c2' } as WorldEvent;
    const view = play([other]);
    expect(liveTurns(opened().room ?? emptyRoom('c1'), view.live)).toEqual([]);
    expect(liveTurns(emptyRoom('c2'), view.live).map(({ text }) => text)).toEqual(['there']);
  });
});

describe('an agent', () => {
  it('is queued, thinks, writes and rests', () => {
    let view = play([stored('turn.queued', { turn: turn('t1', 'queued') })]);
    expect(stateOf(view, 'planner')).toBe('queued');
    view = play([stored('turn.started', { turn: turn('t1', 'running') })], view);
    expect([stateOf(view, 'planner'), isBusy(view.room)]).toEqual(['thinking', true]);
    view = play([stored('turn.done', { turn: turn('t1', 'done') })], view);
    expect([stateOf(view, 'planner'), isBusy(view.room)]).toEqual(['idle', false]);
  });

  it('that chooses silence stops thinking at once', () => {
    const view = play([
      stored('turn.started', { turn: turn('t1', 'running') }),
      delta('t1', 'r', 0, 'better not', 'reasoning'),
      stored('turn.done', { turn: turn('t1', 'silent', { endedAt: '2026-01-01T10:00:01.000Z' }) }),
    ]);
    expect([stateOf(view, 'planner'), view.live.size, isBusy(view.room)]).toEqual(['silent', 0, false]);
  });

  it('shows why it failed', () => {
    const failed = turn('t1', 'failed', { error: { code: 'provider_auth', message: 'wrong key' } });
    const view = play([stored('turn.failed', { turn: failed })]);
    expect(agentStates(view.agents, view.room, view.live).get('planner')).toMatchObject({
      activity: 'failed',
      reason: 'wrong key',
    });
  });
});

describe('an approval', () => {
  const shown = (view: WorldView): string[] =>
    [...(view.room?.approvals.values() ?? [])].map(({ id, status }) => `${id} ${status}`);

  it('waits from its request to its decision, and its agent waits for a person', () => {
    const asked = play([
      stored('turn.waiting', { turn: turn('t1', 'waiting') }),
      stored('approval.requested', { approval: approval('a1') }),
    ]);
    expect([shown(asked), stateOf(asked, 'planner')]).toEqual([['a1 pending'], 'waiting']);
    for (const [type, status] of [
      ['approval.answered', 'answered'],
      ['approval.expired', 'expired'],
      ['approval.cancelled', 'cancelled'],
    ] as const) {
      expect(shown(play([stored(type, { approval: decided('a1', status) })], asked))).toEqual([`a1 ${status}`]);
    }
  });

  it('is not asked again by a list that was read before its decision', () => {
    const view = play([stored('approval.answered', { approval: decided('a1', 'denied') })]);
    const room = withPending(view.room ?? emptyRoom('c1'), [approval('a1'), approval('a2')]);
    expect(shown({ ...view, room })).toEqual(['a1 denied', 'a2 pending']);
  });

  it('keeps its first decision, whatever comes after it', () => {
    const view = play([
      stored('approval.answered', { approval: decided('a1', 'denied', 'Ann') }),
      stored('approval.requested', { approval: approval('a1') }),
      stored('approval.answered', { approval: decided('a1', 'answered', 'Bob') }),
    ]);
    expect(view.room?.approvals.get('a1')?.resolution?.by).toBe('Ann');
  });

  it('is never forgotten while it waits, however many are decided', () => {
    const many = Array.from({ length: 9 }, (_, index) =>
      stored('approval.answered', { approval: decided(`b${index}`, 'answered') }),
    );
    const view = play([stored('approval.requested', { approval: approval('a1') }), ...many]);
    expect(shown(view)).toEqual(['a1 pending', 'b6 answered', 'b7 answered', 'b8 answered']);
  });

  it('of another chat is not in this room', () => {
    const other = approval('a1', { chatId: 'c2' as never });
    const view = play([stored('approval.requested', { approval: other }, 'c2')]);
    expect(shown(view)).toEqual([]);
    expect(withPending(emptyRoom('c1'), [other]).approvals.size).toBe(0);
  });
});

describe('a load beside events', () => {
  it('keeps what events have brought meanwhile', () => {
    const early = play([stored('message.created', { message: message(3) })], { ...opened(), room: emptyRoom('c1') });
    const room = withNewestPage(early.room ?? emptyRoom('c1'), { messages: [message(1), message(2)], next: null });
    expect(room.messages.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  it('does not bring a turn back that has ended since', () => {
    const ended = play([stored('turn.done', { turn: turn('t1', 'done') })]);
    const room = withTurns(ended.room ?? emptyRoom('c1'), [turn('t1', 'running')]);
    expect(room.turns.get('t1')?.state).toBe('done');
  });

  it('takes an end from the list that its events have not told yet', () => {
    const running = play([stored('turn.started', { turn: turn('t1', 'running') })]);
    expect(withTurns(running.room ?? emptyRoom('c1'), [turn('t1', 'done')]).turns.get('t1')?.state).toBe('done');
  });

  it('puts a message once, whether the answer or the event is first', () => {
    const again = play([
      stored('message.created', { message: message(1) }),
      stored('message.created', { message: message(1) }),
    ]);
    expect(again.room?.messages).toHaveLength(1);
  });
});

describe('a branch', () => {
  const room = withNewestPage(emptyRoom('c1'), { messages: [message(1), message(2)], next: null });

  it('is one as long as each message follows the one before it and the chat ends there', () => {
    expect(isOneBranch(room, 'm2')).toBe(true);
    expect(isOneBranch(emptyRoom('c1'), null)).toBe(true);
  });

  it('is left when the chat ends elsewhere, or a message follows an earlier one', () => {
    expect(isOneBranch(room, 'm1')).toBe(false);
    const edited = play([
      stored('message.created', { message: message(2) }),
      stored('message.created', { message: message(3, { parentId: 'm1' as MessageId }) }),
    ]);
    expect(isOneBranch(edited.room ?? room, 'm3')).toBe(false);
  });

  it('keeps the place of a message that is deleted, without its words', () => {
    const view = play([stored('message.deleted', { id: 'm1' })]);
    expect(view.room?.messages.map(({ seq, content }) => [seq, content])).toEqual([[1, '']]);
  });
});

describe('the world', () => {
  it('follows chats and agents as they come and go', () => {
    const view = play([
      stored('chat.created', { chat: chat('c3') }, 'c3'),
      stored('chat.deleted', { id: 'c2' }, 'c2'),
      stored('agent.created', { agent: agent('critic') }),
      stored('agent.removed', { id: 'writer' }),
    ]);
    expect(view.chats.map(({ id }) => id)).toEqual(['c1', 'c3']);
    expect(view.agents.map(({ id }) => id)).toEqual(['planner', 'critic']);
  });

  it('counts messages of chats that are not open', () => {
    const view = play([stored('message.created', { message: message(4, { chatId: 'c2' as never }) }, 'c2')]);
    expect(view.chats.find(({ id }) => id === 'c2')?.lastSeq).toBe(4);
    expect(view.room?.messages).toHaveLength(1);
  });

  it('passes by an event that it does not know', () => {
    const view = opened();
    expect(reduceView(view, stored('limit.reached', {}))).toBe(view);
  });
});

it('keeps the place of an answer when the stream becomes a message', () => {
  const [row] = messageRows([answer(2, 'planner', 't1')]);
  expect(row?.key).toBe('turn:t1');
});
