import { afterEach, describe, expect, test } from 'vitest';
import { OWNER } from '../core/index.ts';
import type { ModelPart, ModelRequest } from '../core/ports.ts';
import { AgentSettings } from '../core/protocol/entities.ts';
import { ModelError } from '../core/protocol/errors.ts';
import { manualClock } from './support/manual-clock.ts';
import { gate, openRoom, type Room } from './support/room.ts';

let room: Room;
afterEach(async () => {
  await room.close();
});

const overloaded = () => new ModelError('provider_overloaded', 'the provider is overloaded', { retryable: true });
/** A model part stream that throws at once. */
async function* failing(error: Error): AsyncIterable<ModelPart> {
  yield* [];
  throw error;
}
/** Streams a beginning, then waits for the end of the call. */
async function* hanging(text: string, signal: AbortSignal): AsyncIterable<ModelPart> {
  yield { type: 'text', text };
  await new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

describe('in parallel', () => {
  test('all agents of a broadcast are at their models at the same time', async () => {
    const names = Array.from({ length: 10 }, (_, index) => `Agent ${index}`);
    const all = gate();
    let atWork = 0;
    room = await openRoom({
      agents: names,
      async *answer() {
        atWork++;
        if (atWork === names.length) all.open();
        await all.opened;
        yield { type: 'text', text: 'here' };
        yield { type: 'finish', stop: 'end' };
      },
    });
    await room.say('everybody?');
    await room.idle();
    expect((await room.messages()).filter((message) => message.content === 'here')).toHaveLength(10);
  });

  test('one agent never has two turns at a time, and its second sees the answer of its first', async () => {
    let running = 0;
    let most = 0;
    const seen: ModelRequest[] = [];
    const first = gate();
    room = await openRoom({
      agents: ['Solo'],
      async *answer(request) {
        seen.push(request);
        most = Math.max(most, ++running);
        if (seen.length === 1) await first.opened;
        running--;
        yield { type: 'text', text: `answer ${seen.length}` };
        yield { type: 'finish', stop: 'end' };
      },
    });
    await room.say('one');
    await room.say('two');
    first.open();
    await room.idle();
    expect(most).toBe(1);
    expect(await room.texts()).toEqual(['Owner: one', 'Owner: two', 'Solo: answer 1', 'Solo: answer 2']);
    expect(seen[1]?.messages.filter((message) => message.role === 'assistant')).toHaveLength(1);
  });

  test('a world’s parallelTurns and the process’s turns bound how many run at once, and all get theirs', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `A${index}`);
    let running = 0;
    let most = 0;
    room = await openRoom({
      agents: names,
      world: { parallelTurns: 5 },
      parley: { processTurns: 3 },
      async *answer() {
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => setImmediate(resolve));
        running--;
        yield { type: 'text', text: 'x' };
        yield { type: 'finish', stop: 'end' };
      },
    });
    const other = (await room.parley.createChat(OWNER, room.world, {})).id;
    await Promise.all([room.say('all'), room.parley.post(OWNER, room.world, other, 'all of you')]);
    await room.idle();
    expect(await room.parley.whenIdle(OWNER, room.world, other, 20_000)).toBe(true);
    expect(most).toBeLessThanOrEqual(3);
    const replies = room.stored().filter((event) => event.type === 'turn.done');
    expect(replies).toHaveLength(24);
  });

  test('fifty posts at once are fifty rows, in one order for everybody', async () => {
    room = await openRoom({ agents: ['A'], answer: () => 'ok', world: { turnLimit: null } });
    await Promise.all(Array.from({ length: 50 }, (_, index) => room.say(`m${index}`)));
    await room.idle();
    const messages = await room.messages();
    expect(messages.filter((message) => message.sender.kind === 'human')).toHaveLength(50);
    expect(messages.map((message) => message.seq)).toEqual(messages.map((_, index) => index + 1));
    const seqs = room.stored().map((event) => event.seq);
    expect([...seqs].sort((a, b) => a - b)).toEqual(
      Array.from({ length: seqs.length }, (_, index) => index + (seqs[0] ?? 0)),
    );
  });
});

describe('what is visible', () => {
  test('an agent that says nothing, or passes, has a silent turn', async () => {
    room = await openRoom({
      agents: ['Empty', 'Passing', 'Talking'],
      answer: ({ scene }) =>
        scene.agent.id === 'empty' ? '' : scene.agent.id === 'passing' ? '<world>PASS</world>' : 'hi',
    });
    await room.say('hello');
    await room.idle();
    expect(await room.texts()).toEqual(['Owner: hello', 'Talking: hi']);
    const states = (await room.parley.turns(OWNER, room.world, room.chat)).map((turn) => [turn.agentId, turn.state]);
    expect(states.sort()).toEqual([
      ['empty', 'silent'],
      ['passing', 'silent'],
      ['talking', 'done'],
    ]);
  });

  test('deltas join to the final message, count up, and carry one run', async () => {
    room = await openRoom({ agents: ['A'], answer: () => 'a somewhat longer answer in chunks', parley: { joinMs: 0 } });
    await room.say('go');
    await room.idle();
    const deltas = room.events.flatMap((event) => (event.type === 'message.delta' ? [event.data] : []));
    expect(deltas.map((delta) => delta.text).join('')).toBe('a somewhat longer answer in chunks');
    expect(deltas.map((delta) => delta.index)).toEqual(deltas.map((_, index) => index));
    expect(new Set(deltas.map((delta) => delta.runId)).size).toBe(1);
    const end = room.events.findIndex((event) => event.type === 'turn.done');
    expect(room.events.slice(end).some((event) => event.type === 'message.delta')).toBe(false);
  });

  test('usage is on the message, the agent, the chat and the world, and adds up', async () => {
    room = await openRoom({ agents: ['A', 'B'], answer: () => 'ok' });
    await room.say('all');
    await room.idle();
    const usage = await room.parley.usage(OWNER, room.world);
    expect(usage.total).toEqual({
      inputTokens: 20,
      outputTokens: 10,
      cachedTokens: 4,
      reasoningTokens: 2,
      usd: 0,
      calls: 2,
    });
    expect(usage.agents['a']).toMatchObject({ inputTokens: 10, calls: 1 });
    expect(usage.chats[room.chat]).toEqual(usage.total);
    const replies = (await room.messages()).filter((message) => message.usage);
    expect(replies.reduce((sum, message) => sum + (message.usage?.inputTokens ?? 0), 0)).toBe(20);
  });
});

describe('loops', () => {
  test('two agents that address each other end at the limit, once told, and go on after continue', async () => {
    room = await openRoom({
      agents: ['Ping', 'Pong'],
      world: { turnLimit: 3 },
      answer: ({ scene }) => (scene.agent.id === 'ping' ? '@Pong your turn' : '@Ping yours'),
    });
    await room.say('@Ping start');
    await room.idle();
    const turnsOf = async (state: string) =>
      (await room.parley.turns(OWNER, room.world, room.chat)).filter((turn) => turn.state === state).length;
    expect(await turnsOf('done')).toBe(6);
    const told = room.stored().filter((event) => event.type === 'limit.reached');
    expect(told.map((event) => event.data.limit)).toEqual(['turnLimit']);
    const notice = (await room.messages()).at(-1);
    expect(notice).toMatchObject({
      sender: { kind: 'system' },
      notice: { kind: 'limit', limit: 'turnLimit', used: 3, max: 3 },
    });
    await room.parley.continueChat(OWNER, room.world, room.chat);
    await room.idle();
    expect(await turnsOf('done')).toBe(12);
    await room.say('@Ping once more');
    await room.idle();
    expect(await turnsOf('done')).toBe(18);
  });

  test('continue without a reached limit is refused', async () => {
    room = await openRoom({ agents: ['A'], answer: () => 'ok' });
    await expect(room.parley.continueChat(OWNER, room.world, room.chat)).rejects.toMatchObject({
      code: 'nothing_to_continue',
    });
  });
});

describe('a failing provider', () => {
  test('is tried again with growing delays until it answers; clients see a new run', async () => {
    const clock = manualClock();
    let calls = 0;
    room = await openRoom({
      agents: ['A'],
      parley: { clock, joinMs: 0 },
      async *answer() {
        calls++;
        yield { type: 'text', text: `try ${calls} ` };
        if (calls < 3) throw overloaded();
        yield { type: 'text', text: 'done' };
        yield { type: 'finish', stop: 'end' };
      },
    });
    await room.say('go');
    const delays: number[] = [];
    for (const wanted of [500, 1000]) {
      await room.event('turn.retrying', (event) => event.data.delayMs === wanted);
      await clock.waiting(wanted);
      clock.advance(wanted);
      delays.push(wanted);
    }
    await room.event('turn.done');
    expect((await room.texts()).at(-1)).toBe('A: try 3 done');
    const runs = new Set(room.events.flatMap((event) => (event.type === 'message.delta' ? [event.data.runId] : [])));
    expect(runs.size).toBe(3);
    expect(delays).toEqual([500, 1000]);
  });

  test('waits as long as the provider asks', async () => {
    const clock = manualClock();
    let calls = 0;
    room = await openRoom({
      agents: ['A'],
      parley: { clock },
      answer: () =>
        ++calls === 1
          ? failing(new ModelError('provider_rate_limited', 'slow down', { retryable: true, retryAfterMs: 7000 }))
          : 'at last',
    });
    await room.say('go');
    const retrying = await room.event('turn.retrying');
    expect(retrying.data).toMatchObject({ code: 'provider_rate_limited', delayMs: 7000 });
    await clock.waiting(7000);
    clock.advance(7000);
    await room.event('turn.done');
    expect(calls).toBe(2);
  });

  test('ends failed at the total deadline, with a word in the room; the next message is answered', async () => {
    const clock = manualClock();
    let broken = true;
    let calls = 0;
    room = await openRoom({
      agents: ['A'],
      parley: { clock, retry: { firstDelayMs: 1000, maxDelayMs: 8000, deadlineMs: 20_000 } },
      answer: () => {
        calls++;
        return broken ? failing(overloaded()) : 'back again';
      },
    });
    await room.say('go');
    for (const delay of [1000, 2000, 4000, 8000]) {
      await clock.waiting(delay);
      clock.advance(delay);
    }
    const failed = await room.event('turn.failed');
    expect(failed.data.turn.error?.code).toBe('provider_overloaded');
    expect(calls).toBe(5);
    expect((await room.messages()).at(-1)).toMatchObject({
      sender: { kind: 'system' },
      notice: { kind: 'turn_failed' },
    });
    broken = false;
    await room.say('again');
    await room.event('turn.done');
    expect((await room.texts()).at(-1)).toBe('A: back again');
  });

  test('is not tried again where that cannot help', async () => {
    let calls = 0;
    room = await openRoom({
      agents: ['A'],
      answer: () => {
        calls++;
        return failing(new ModelError('provider_auth', 'the key was refused', { retryable: false }));
      },
    });
    await room.say('go');
    await room.idle();
    expect(calls).toBe(1);
    expect((await room.parley.turns(OWNER, room.world, room.chat))[0]).toMatchObject({
      state: 'failed',
      error: { code: 'provider_auth' },
    });
  });

  test('half a stream is tried again, never stored as the answer', async () => {
    const clock = manualClock();
    let calls = 0;
    room = await openRoom({
      agents: ['A'],
      parley: { clock },
      async *answer() {
        yield { type: 'text', text: ++calls === 1 ? 'half' : 'whole' };
        if (calls > 1) yield { type: 'finish', stop: 'end' };
      },
    });
    await room.say('go');
    await clock.waiting(500);
    clock.advance(500);
    await room.event('turn.done');
    expect(await room.texts()).toEqual(['Owner: go', 'A: whole']);
  });

  test('that hangs ends at the agent’s time limit with what it said so far', async () => {
    const clock = manualClock();
    room = await openRoom({
      agents: [],
      parley: { clock, joinMs: 0 },
      answer: (_, signal) => hanging('I think', signal),
    });
    await room.parley.createAgent(
      OWNER,
      room.world,
      AgentSettings.parse({ name: 'Slow', limits: { timeoutMs: 60_000 } }),
    );
    await room.say('go');
    await room.event('message.delta');
    clock.advance(60_000);
    const failed = await room.event('turn.failed');
    expect(failed.data.turn.error?.code).toBe('turn_timeout');
    expect((await room.messages()).find((message) => message.content === 'I think')?.status).toBe('failed');
  });

  test('a fault of our own ends the turn, not the server, and is logged', async () => {
    room = await openRoom({ agents: ['A'], answer: () => failing(new TypeError('undefined is not a function')) });
    await room.say('go');
    await room.idle();
    expect((await room.parley.turns(OWNER, room.world, room.chat))[0]?.error?.code).toBe('internal');
    expect(room.log.entries.some((entry) => entry.level === 'error')).toBe(true);
    expect(JSON.stringify(await room.messages())).not.toContain('undefined is not a function');
  });

  test('a model that calls a tool that is not there is told so, and ends at its iterations with a visible limit', async () => {
    let calls = 0;
    room = await openRoom({
      agents: [],
      async *answer() {
        calls++;
        yield { type: 'toolCall', id: `call${calls}`, name: 'nope', args: { n: calls }, raw: '{}' };
        yield { type: 'finish', stop: 'tool' };
      },
    });
    await room.parley.createAgent(OWNER, room.world, AgentSettings.parse({ name: 'A', limits: { maxIterations: 3 } }));
    await room.say('go');
    await room.idle();
    expect(calls).toBe(3);
    const reached = room.stored().find((event) => event.type === 'limit.reached');
    expect(reached?.data).toMatchObject({ limit: 'maxIterations', used: 3, max: 3 });
  });
});

describe('stop and restart', () => {
  test('stop ends running and queued turns, keeps what was said, and the chat takes the next message', async () => {
    let hang = true;
    const aborted: string[] = [];
    room = await openRoom({
      agents: ['A', 'B'],
      parley: { joinMs: 0 },
      answer: ({ scene }, signal) => {
        if (!hang) return 'fresh';
        signal.addEventListener('abort', () => aborted.push(scene.agent.id), { once: true });
        return hanging('so far', signal);
      },
    });
    await room.say('go');
    await room.say('@A and again');
    await room.event('message.delta', (event) => event.data.agentId === 'a');
    await room.event('message.delta', (event) => event.data.agentId === 'b');
    await room.parley.stop(OWNER, room.world, room.chat);
    expect(aborted.sort()).toEqual(['a', 'b']);
    const turns = await room.parley.turns(OWNER, room.world, room.chat);
    expect(turns.map((turn) => turn.state)).toEqual(['stopped', 'stopped', 'stopped']);
    const stopped = (await room.messages()).filter((message) => message.status === 'stopped');
    expect(stopped.map((message) => [message.content, message.routing.woke])).toEqual([
      ['so far', []],
      ['so far', []],
    ]);
    hang = false;
    await room.say('@A now');
    await room.idle();
    expect((await room.texts()).at(-1)).toBe('A: fresh');
  });

  test('a server that is closed in mid-turn goes on with it when it is opened again', async () => {
    let hang = true;
    room = await openRoom({
      agents: ['A'],
      parley: { joinMs: 0 },
      answer: (_, signal) => (hang ? hanging('half', signal) : 'whole'),
    });
    await room.say('go');
    await room.event('message.delta');
    hang = false;
    await room.reopen();
    await room.idle();
    expect(await room.texts()).toEqual(['Owner: go', 'A: whole']);
    expect((await room.parley.turns(OWNER, room.world, room.chat))[0]).toMatchObject({ state: 'done', attempt: 2 });
  });

  test('pause lets running turns finish and starts none; resume goes on', async () => {
    const first = gate();
    room = await openRoom({
      agents: ['A'],
      async *answer({ scene }) {
        if (scene.text === 'one') await first.opened;
        yield { type: 'text', text: `re ${scene.text}` };
        yield { type: 'finish', stop: 'end' };
      },
    });
    await room.say('one');
    await room.event('turn.started');
    await room.parley.pause(OWNER, room.world, room.chat);
    await room.say('two');
    first.open();
    await room.event('turn.done');
    expect(await room.texts()).toEqual(['Owner: one', 'Owner: two', 'A: re one']);
    await room.parley.resume(OWNER, room.world, room.chat);
    await room.idle();
    expect((await room.texts()).at(-1)).toBe('A: re two');
  });

  test('deleting a chat or a world in mid-turn stops it first', async () => {
    let aborted = 0;
    room = await openRoom({
      agents: ['A'],
      parley: { joinMs: 0 },
      answer: (_, signal) => {
        signal.addEventListener('abort', () => aborted++, { once: true });
        return hanging('x', signal);
      },
    });
    await room.say('go');
    await room.event('message.delta');
    await room.parley.deleteChat(OWNER, room.world, room.chat);
    expect(aborted).toBe(1);
    await expect(room.say('hello?')).rejects.toMatchObject({ code: 'not_found' });
    const other = (await room.parley.createChat(OWNER, room.world, {})).id;
    await room.parley.post(OWNER, room.world, other, 'go');
    await room.event('message.delta', (event) => event.chat === other);
    await room.parley.deleteWorld(OWNER, room.world);
    expect(aborted).toBe(2);
    await expect(room.parley.getWorld(OWNER, room.world)).rejects.toMatchObject({ code: 'not_found' });
  });
});

test('a turn whose end a fault kept from the store ends as it should, and no model is asked again', async () => {
  const first = gate();
  let calls = 0;
  room = await openRoom({
    agents: ['A'],
    async *answer() {
      if (++calls === 1) await first.opened;
      yield { type: 'text', text: `answer ${calls}` };
      yield { type: 'finish', stop: 'end' };
    },
  });
  await room.say('go');
  await room.event('turn.started');
  const { store } = room.parley;
  const commitTurn = store.commitTurn;
  store.commitTurn = async () => {
    store.commitTurn = commitTurn;
    throw new TypeError('a fault at the worst moment');
  };
  first.open();
  await room.event('turn.done');
  await room.idle();
  expect(await last(room)).toBe('A: answer 1');
  expect((await room.parley.turns(OWNER, room.world, room.chat))[0]).toMatchObject({ state: 'done', attempt: 1 });
});

const last = async (where: Room) => (await where.texts()).at(-1);
