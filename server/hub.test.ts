import { setImmediate as nextTick } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BOUNDS, type Bounds } from './bounds.ts';
import { type Hub, openHub } from './hub.ts';
import { type MemoryLog, memoryLog, RecordingSink, silentLog } from './testing/memory-log.ts';

const small: Bounds = { ...BOUNDS, pageEvents: 3, windowEvents: 4, sliceClients: 2, queuedEvents: 4 };

function setUp(bounds: Bounds = small): { log: MemoryLog; hub: Hub } {
  const log = memoryLog();
  const liveText = (_world: string, chat?: string) =>
    log.live.filter((live) => chat === undefined || live.chat === chat);
  return { log, hub: openHub({ bus: log.bus, events: log.events, liveText, log: silentLog }, bounds) };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 60; turn += 1) await nextTick();
}

const range = (from: number, to: number) => Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);

describe('a subscription', () => {
  it('without a place begins with the next event', async () => {
    const { log, hub } = setUp();
    for (let n = 0; n < 5; n += 1) log.append('c');
    const sink = new RecordingSink();
    await hub.subscribe({ world: 'w' }, sink);
    log.append('c');
    expect(sink.opens).toEqual([{ seq: 5, resync: false }]);
    expect(sink.seqs).toEqual([6]);
  });

  it('with a place gets all since from the log, then what happens', async () => {
    const { log, hub } = setUp();
    for (let n = 0; n < 10; n += 1) log.append('c');
    const sink = new RecordingSink();
    await hub.subscribe({ world: 'w', after: 2 }, sink);
    log.append('c');
    await settle();
    log.append('c');
    expect(sink.seqs).toEqual(range(3, 12));
  });

  it('with a place in the future is told to load anew and goes on from the head', async () => {
    const { log, hub } = setUp();
    log.append('c');
    const sink = new RecordingSink();
    await hub.subscribe({ world: 'w', after: 99 }, sink);
    log.append('c');
    expect(sink.opens).toEqual([{ seq: 1, resync: true }]);
    expect(sink.seqs).toEqual([2]);
  });

  it('to an unknown world is refused and leaves nothing behind', async () => {
    const { hub } = setUp();
    await expect(hub.subscribe({ world: 'nope' }, new RecordingSink())).rejects.toMatchObject({ code: 'not_found' });
    expect(hub.size()).toEqual({ channels: 0, cursors: 0 });
  });

  it('hears of its world’s end, and nothing of the world that later has its name', async () => {
    const { log, hub } = setUp();
    const sink = new RecordingSink();
    await hub.subscribe({ world: 'w' }, sink);
    log.append('c');
    log.remove();
    log.append('c');
    expect(sink.heard.map(({ event }) => event.type)).toEqual(['turn.queued', 'world.deleted']);
    expect(sink.end).toBe('deleted');
    expect(hub.size()).toEqual({ channels: 0, cursors: 0 });
  });

  it('that was closed hears nothing more, and the last one frees the bus', async () => {
    const { log, hub } = setUp();
    const sink = new RecordingSink();
    const subscription = await hub.subscribe({ world: 'w' }, sink);
    subscription.close();
    log.append('c');
    expect(sink.seqs).toEqual([]);
    expect(hub.size()).toEqual({ channels: 0, cursors: 0 });
  });

  it('gets an event that the bus lost at the next look into the log', async () => {
    const { log, hub } = setUp();
    const sink = new RecordingSink();
    await hub.subscribe({ world: 'w' }, sink);
    log.append('c', false);
    await hub.sweep();
    await settle();
    expect(sink.seqs).toEqual([1]);
  });

  it('needs no read of the log where it is little behind', async () => {
    const { log, hub } = setUp();
    await hub.subscribe({ world: 'w' }, new RecordingSink());
    for (let n = 0; n < 4; n += 1) log.append('c');
    const sink = new RecordingSink();
    await hub.subscribe({ world: 'w', after: 1 }, sink);
    await settle();
    expect(sink.seqs).toEqual([2, 3, 4]);
    expect(log.reads).toBe(0);
  });

  it('shares its text among all listeners', async () => {
    const { log, hub } = setUp();
    const sinks = [new RecordingSink(), new RecordingSink()];
    for (const sink of sinks) await hub.subscribe({ world: 'w' }, sink);
    log.append('c');
    expect(sinks[0]?.heard[0]?.frame).toBe(sinks[1]?.heard[0]?.frame);
  });
});

describe('live text', () => {
  it('reaches a late joiner whole, and goes on without gap or double', async () => {
    const { log, hub } = setUp();
    log.delta('c', 'one ');
    log.delta('c', 'two ');
    const sink = new RecordingSink();
    await hub.subscribe({ world: 'w' }, sink);
    log.delta('c', 'three');
    expect(sink.text).toBe('one two three');
  });

  it('is what a slow client loses first; when it reads again it gets the text so far', async () => {
    const { log, hub } = setUp();
    const sink = new RecordingSink();
    await hub.subscribe({ world: 'w' }, sink);
    log.delta('c', 'one ');
    sink.setSlow(true);
    log.delta('c', 'two ');
    log.delta('c', 'three ');
    expect(sink.text).toBe('one ');
    sink.setSlow(false);
    log.delta('c', 'four');
    expect(sink.text).toBe('one two three four');
  });

  it('of other chats stays out of a chat’s subscription', async () => {
    const { log, hub } = setUp();
    const sink = new RecordingSink();
    await hub.subscribe({ world: 'w', chat: 'b' }, sink);
    log.delta('a', 'no');
    log.delta('b', 'yes');
    expect(sink.text).toBe('yes');
  });

  it('is whole for many clients that are written to in slices', async () => {
    const { log, hub } = setUp();
    const sinks = Array.from({ length: 7 }, () => new RecordingSink());
    for (const sink of sinks) await hub.subscribe({ world: 'w' }, sink);
    let text = '';
    for (let n = 0; n < 20; n += 1) {
      log.delta('c', `${n} `);
      text += `${n} `;
      if (n % 5 === 0) await nextTick();
      if (n === 10) {
        const late = new RecordingSink();
        sinks.push(late);
        await hub.subscribe({ world: 'w' }, late);
      }
    }
    await settle();
    log.delta('c', 'end');
    await settle();
    expect(sinks.map((sink) => sink.text)).toEqual(sinks.map(() => `${text}end`));
  });
});

describe('whatever happens on the way', () => {
  const chats = fc.constantFrom('a', 'b');
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('append' as const), chat: chats, tell: fc.boolean() }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('subscribe' as const),
        after: fc.option(fc.nat(12), { nil: undefined }),
        chat: fc.option(chats, { nil: undefined }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('slow' as const), who: fc.nat(9), isSlow: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('replay' as const), seq: fc.nat(20) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('tick' as const), times: fc.nat(3) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('delta' as const), chat: chats }) },
  );

  it('every client gets every stored event once and in order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { log, hub } = setUp();
        const clients: { sink: RecordingSink; chat: string | undefined }[] = [];
        const opening: Promise<unknown>[] = [];
        for (const now of steps) {
          if (now.do === 'append') log.append(now.chat, now.tell);
          else if (now.do === 'delta') log.delta(now.chat, 'x');
          else if (now.do === 'slow') clients[now.who % Math.max(1, clients.length)]?.sink.setSlow(now.isSlow);
          else if (now.do === 'replay') {
            // A bus may repeat itself, and it may bring events late.
            const old = log.all()[now.seq];
            if (old !== undefined) log.bus.publish(old);
          } else if (now.do === 'tick') {
            for (let n = 0; n < now.times; n += 1) await nextTick();
          } else {
            const client = { sink: new RecordingSink(), chat: now.chat };
            clients.push(client);
            opening.push(hub.subscribe({ world: 'w', chat: now.chat, after: now.after }, client.sink));
          }
        }
        await Promise.all(opening);
        for (const { sink } of clients) sink.setSlow(false);
        await settle();
        await hub.sweep();
        await settle();
        for (const { sink, chat } of clients) {
          const from = sink.opens[0]?.seq ?? Number.NaN;
          const expected = log
            .all()
            .filter((e) => e.seq > from && (chat === undefined || ('chat' in e && e.chat === chat)));
          expect(sink.seqs).toEqual(expected.map((e) => e.seq));
        }
        hub.close();
        expect(hub.size()).toEqual({ channels: 0, cursors: 0 });
      }),
      { numRuns: 300 },
    );
  });
});
