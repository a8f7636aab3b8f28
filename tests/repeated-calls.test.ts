import { afterEach, describe, expect, test } from 'vitest';
import { OWNER } from '../core/index.ts';
import { COUNTED, openCountedRoom, tool } from './support/counted-room.ts';
import type { Answer, Room } from './support/room.ts';

let room: Room;
afterEach(async () => {
  await room.close();
});
async function open(...options: Parameters<typeof openCountedRoom>): Promise<void> {
  room = await openCountedRoom(...options);
}
const turns = () => room.parley.turns(OWNER, room.world, room.chat);
async function say(text: string) {
  await room.say(text);
  await room.idle();
}

describe('a call that fails again and again', () => {
  /** Calls `look` with each of these arguments in turn, then says how many calls it made. */
  function looking(list: readonly Record<string, unknown>[]): Answer {
    return async function* answer(request) {
      const done = request.messages.filter((message) => message.role === 'tool').length;
      const args = list[done];
      if (args) yield { type: 'toolCall', id: `c${done}`, name: 'look', args, raw: JSON.stringify(args) };
      else yield { type: 'text', text: `${done} calls` };
      yield { type: 'finish', stop: args ? 'tool' : 'end', usage: COUNTED };
    };
  }
  const look = (fails: (args: Record<string, unknown>) => boolean) => ({
    parley: { tools: [tool('look', 'read', async (args) => fails(args))] },
  });

  test('in the same words ends the turn at the third, whatever the order of the arguments', async () => {
    const list = [
      { a: 1, b: { c: 2, d: 3 } },
      { b: { d: 3, c: 2 }, a: 1 },
      { a: 1, b: { c: 2, d: 3 } },
      { a: 1, b: { c: 2, d: 3 } },
    ];
    await open(
      looking(list),
      {},
      look(() => true),
    );
    await say('go');
    expect((await turns())[0]).toMatchObject({
      state: 'failed',
      error: { code: 'repeated_call' },
      usage: { calls: 3, inputTokens: 300 },
    });
    const last = (await room.messages()).at(-1);
    expect(last?.notice).toMatchObject({ kind: 'turn_failed', error: 'repeated_call' });
    expect(last?.content).toContain('look');
  });

  test('goes on where another call or a success lies between', async () => {
    const list = [{ x: 1 }, { x: 1 }, { x: 2 }, { x: 1 }, { x: 1 }, { ok: 1 }, { x: 1 }, { x: 1 }];
    await open(
      looking(list),
      {},
      look((args) => args['ok'] === undefined),
    );
    await say('go');
    expect((await room.texts()).at(-1)).toBe('A: 8 calls');
  });

  test('may succeed as often as it likes', async () => {
    await open(
      looking([{ x: 1 }, { x: 1 }, { x: 1 }, { x: 1 }]),
      {},
      look(() => false),
    );
    await say('go');
    expect((await room.texts()).at(-1)).toBe('A: 4 calls');
  });
});
