import { afterEach, describe, expect, test } from 'vitest';
import { OWNER } from '../core/index.ts';
import type { SqliteStore } from '../core/store/sqlite/index.ts';
import { type Answer, openRoom, type Room } from './support/room.ts';

/** Faults of our own in a store or an engine: no chat hangs, no slot is lost, the event loop stays free. */

let room: Room;
afterEach(() => room.close());

const echo: Answer = (request) => `${request.scene.agent.name} heard ${request.scene.text}`;

/** Lets the next calls of a store's method throw what no part of it expects. */
function breakNext(method: 'commitTurn' | 'next' | 'messages' | 'release', times: number): () => number {
  const store: SqliteStore = room.parley.store;
  const whole = store[method].bind(store) as (...args: unknown[]) => Promise<unknown>;
  let broken = 0;
  const faulty = async (...args: unknown[]): Promise<unknown> => {
    if (broken >= times) return whole(...args);
    broken += 1;
    throw new Error(`injected into ${method}`);
  };
  Object.assign(store, { [method]: faulty });
  return () => broken;
}

/** Holds the calls of a store's method back, once they have been made, until `open` is called. */
function holdBack(method: 'next' | 'dropQueued', from: number) {
  const store: SqliteStore = room.parley.store;
  const whole = store[method].bind(store) as (...args: unknown[]) => Promise<unknown>;
  let calls = 0;
  let arrived = () => {};
  let open = () => {};
  const held = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const slow = async (...args: unknown[]): Promise<unknown> => {
    calls += 1;
    if (calls < from) return whole(...args);
    if (method === 'dropQueued') {
      arrived();
      await gate;
      return whole(...args);
    }
    const value = await whole(...args);
    arrived();
    await gate;
    return value;
  };
  Object.assign(store, { [method]: slow });
  return { held, open };
}

describe('a fault while a turn ends', () => {
  test('that stays ends it failed with what was said and a word in the room; the next message is answered', async () => {
    room = await openRoom({ answer: echo, agents: ['ann'] });
    breakNext('commitTurn', 2);
    await room.say('@ann one');
    await room.idle();
    const [, said, notice] = await room.messages();
    expect(said).toMatchObject({ content: 'ann heard @ann one', status: 'failed' });
    expect(notice).toMatchObject({ notice: { kind: 'turn_failed', error: 'internal' } });
    const [turn] = await room.parley.turns(OWNER, room.world, room.chat);
    expect(turn).toMatchObject({ state: 'failed', error: { code: 'internal' } });
    expect(turn?.usage.calls).toBe(1);
    await room.say('@ann two');
    await room.idle();
    expect((await room.texts()).at(-1)).toBe('ann: ann heard @ann two');
  });

  test('is tried again until it can be written; meanwhile the server works', async () => {
    room = await openRoom({ answer: echo, agents: ['ann', 'bob'] });
    const broken = breakNext('commitTurn', 4);
    await room.say('@ann one');
    await room.event('turn.failed');
    expect(broken()).toBe(4);
    await room.say('@bob two');
    await room.idle();
    expect((await room.texts()).at(-1)).toBe('bob: bob heard @bob two');
  });

  test('leaves the slots of the process whole', async () => {
    room = await openRoom({ answer: echo, agents: ['ann', 'bob'], parley: { processTurns: 1 } });
    breakNext('commitTurn', 3);
    await room.say('@ann and @bob: one');
    await room.idle();
    breakNext('next', 2);
    await room.say('@ann and @bob: two');
    await room.idle();
    expect((await room.texts()).filter((text) => text.endsWith('two'))).toHaveLength(3);
  });
});

describe('a fault elsewhere', () => {
  test.each(['next', 'release'] as const)('in the store’s %s is tried again, and the chat goes on', async (method) => {
    room = await openRoom({ answer: echo, agents: ['ann'] });
    breakNext(method, 3);
    await room.say('@ann one');
    await room.event('message.created', ({ data }) => data.message.sender.name === 'ann');
    await room.say('@ann two');
    await room.idle();
    expect((await room.texts()).at(-1)).toBe('ann: ann heard @ann two');
  });

  test('while the chat is read fails that turn alone', async () => {
    room = await openRoom({ answer: echo, agents: ['ann', 'bob'] });
    breakNext('messages', 1);
    await room.say('everybody');
    await room.idle();
    const states = (await room.parley.turns(OWNER, room.world, room.chat)).map((turn) => turn.state);
    expect(states.sort()).toEqual(['done', 'failed']);
  });
});

describe('slots', () => {
  test('a chat that found the process full starts the rest as soon as another chat has ended', async () => {
    const finish = new Map<string, () => void>();
    room = await openRoom({
      answer: async function* (request) {
        await new Promise<void>((resolve) => finish.set(`${request.scene.agent.name} ${request.scene.text}`, resolve));
        yield { type: 'text', text: 'done' };
        yield { type: 'finish', stop: 'end' };
      },
      agents: ['ann', 'bob'],
      parley: { processTurns: 2 },
    });
    const other = (await room.parley.createChat(OWNER, room.world, {})).id;
    const started = (agent: string, chat: string) =>
      room.event('turn.started', (event) => event.chat === chat && event.data.turn.agentId === agent);
    await room.parley.post(OWNER, room.world, other, '@ann other');
    await started('ann', other);
    await room.say('everybody here');
    await started('ann', room.chat);
    const waiting = started('bob', room.chat);
    await expect.poll(() => finish.has('ann @ann other')).toBe(true);
    // Ann of this chat goes on and on; the slot of the other chat is the one that Bob gets.
    finish.get('ann @ann other')?.();
    await waiting;
    await expect.poll(() => finish.size).toBe(3);
    for (const end of finish.values()) end();
    await room.idle();
  });
});

describe('stop is final', () => {
  test('also for a turn that was just being started', async () => {
    room = await openRoom({ answer: echo, agents: ['ann'] });
    const { held, open } = holdBack('next', 1);
    await room.say('@ann one');
    await held;
    const stopped = room.parley.stop(OWNER, room.world, room.chat);
    open();
    await stopped;
    const [turn] = await room.parley.turns(OWNER, room.world, room.chat);
    expect(turn?.state).toBe('stopped');
    expect(await room.texts()).toHaveLength(1);
  });

  test('also for turns that the last words of a stopped chat have queued', async () => {
    let speak = () => {};
    const mayspeak = new Promise<void>((resolve) => {
      speak = resolve;
    });
    room = await openRoom({
      answer: async function* ({ scene }) {
        if (scene.agent.name === 'ann') await mayspeak;
        yield { type: 'text', text: scene.agent.name === 'ann' ? '@bob go on' : 'bob goes on' };
        yield { type: 'finish', stop: 'end' };
      },
      agents: ['ann', 'bob'],
      world: { parallelTurns: 1 },
    });
    await room.say('@ann begin');
    await room.event('turn.started');
    // A second wake of Bob, posted while the stop waits, stands for what a commit under way may queue.
    const { held, open } = holdBack('dropQueued', 2);
    const stopped = room.parley.stop(OWNER, room.world, room.chat);
    speak();
    await held;
    await room.say('@bob in between');
    open();
    await stopped;
    await room.idle();
    const turns = await room.parley.turns(OWNER, room.world, room.chat);
    expect(turns.map((turn) => turn.state)).toEqual(['stopped', 'stopped']);
    await room.say('@bob now');
    await room.idle();
    expect((await room.texts()).at(-1)).toBe('bob: bob goes on');
  });

  test('two stops and a close at once leave nothing running', async () => {
    room = await openRoom({
      answer: async function* (_request, signal) {
        yield { type: 'text', text: 'half ' };
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
      agents: ['ann', 'bob'],
    });
    await room.say('everybody');
    await room.event('message.delta');
    const stops = [1, 2].map(() => room.parley.stop(OWNER, room.world, room.chat));
    await Promise.all([...stops, room.parley.close()].map((work) => work.catch(() => {})));
    await room.reopen();
    const turns = await room.parley.turns(OWNER, room.world, room.chat);
    expect(turns.map((turn) => turn.attempt)).toEqual([1, 1]);
  });
});
