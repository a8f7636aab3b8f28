import { afterEach, expect, test } from 'vitest';
import { OWNER } from '../core/index.ts';
import type { ModelRequest } from '../core/ports.ts';
import { openRoom, type Room } from './support/room.ts';

/** The promised bounds, with tenfold slack: a test is no stopwatch. */
const MODEL_MS = 200;
const MAX_ADDED_MS = 400 * 10;

let room: Room;
afterEach(async () => {
  await room.close();
});

test('ten agents with a slow model answer a broadcast side by side', async () => {
  room = await openRoom({
    agents: Array.from({ length: 10 }, (_, index) => `Agent ${index}`),
    async *answer() {
      await new Promise((resolve) => setTimeout(resolve, MODEL_MS));
      yield { type: 'text', text: 'here' };
      yield { type: 'finish', stop: 'end' };
    },
  });
  const start = performance.now();
  await room.say('everybody?');
  await room.idle();
  const added = performance.now() - start - MODEL_MS;
  console.log(`ten agents, ${MODEL_MS} ms model: ${added.toFixed(0)} ms added`);
  expect((await room.messages()).filter((message) => message.content === 'here')).toHaveLength(10);
  expect(added).toBeLessThan(MAX_ADDED_MS);
});

test('a reply in a chat of 3,000 messages reads and runs no more than in a chat of 500', async () => {
  const seen: ModelRequest[] = [];
  room = await openRoom({
    agents: ['A'],
    world: { turnLimit: null, chatTurnLimit: null },
    answer(request) {
      seen.push(request);
      return 'ok';
    },
  });
  const fill = async (count: number) => {
    await room.parley.patchAgent(OWNER, room.world, 'a', { status: 'inactive' });
    for (let index = 0; index < count; index++) await room.say(`message ${index} of a long chat`);
    await room.parley.patchAgent(OWNER, room.world, 'a', { status: 'active' });
  };
  const reply = async () => {
    const before = room.parley.store.counters();
    const start = performance.now();
    await room.say('@A and now?');
    await room.idle();
    const after = room.parley.store.counters();
    return {
      ms: performance.now() - start,
      statements: after.statements - before.statements,
      bytes: JSON.stringify(seen.at(-1)?.messages).length,
    };
  };
  await fill(500);
  await reply();
  const short = await reply();
  await fill(2500);
  await reply();
  const long = await reply();
  console.log(`a reply at 500 messages: ${short.ms.toFixed(1)} ms, at 3,000: ${long.ms.toFixed(1)} ms`);
  // How often the queue is looked at depends on the moment; what grows with the chat would be hundreds.
  expect(Math.abs(long.statements - short.statements)).toBeLessThan(6);
  expect(long.bytes).toBeLessThan(short.bytes * 1.1);
});
