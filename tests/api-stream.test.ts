import { afterEach, describe, expect, it } from 'vitest';
import type { Bounds } from '../server/bounds.ts';
import { type RunningServer, startServer } from '../server/listen.ts';
import { type MemoryLog, memoryLog } from '../server/testing/memory-log.ts';
import { type StubParley, stubParley } from '../server/testing/stub-parley.ts';

let running: RunningServer | undefined;
const aborts: AbortController[] = [];
afterEach(async () => {
  for (const abort of aborts.splice(0)) abort.abort();
  await running?.close();
  running = undefined;
});

async function start(bounds: Partial<Bounds> = {}): Promise<{ log: MemoryLog; parley: StubParley }> {
  const log = memoryLog();
  const parley = stubParley(log);
  const fixed = {
    host: '127.0.0.1',
    port: 0,
    auth: true,
    allowedHosts: [],
    tokenFile: '/somewhere/token',
    webDir: null,
  };
  running = await startServer({ parley, ...fixed, bounds: { closeGraceMs: 500, ...bounds } });
  return { log, parley };
}

interface Block {
  id?: string;
  event?: string;
  data?: { type: string; seq?: number; data?: { text?: string; index?: number } };
  comment?: string;
}

/** Reads an event stream by the rules of its format, block by block. */
async function follow(query = '', headers: Record<string, string> = {}, token = 'owner-token') {
  const abort = new AbortController();
  aborts.push(abort);
  const response = await fetch(`${running?.url}/api/v1/worlds/w/events/stream${query}`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
    signal: abort.signal,
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '';
  const next = async (): Promise<Block | null> => {
    for (;;) {
      const end = buffer.indexOf('\n\n');
      if (end >= 0) {
        const lines = buffer.slice(0, end).split('\n');
        buffer = buffer.slice(end + 2);
        return Object.fromEntries(
          lines.map((line) => {
            const [, name = '', value = ''] = /^(\w*): ?(.*)$/s.exec(line) ?? [];
            return name === '' ? ['comment', value] : [name, name === 'data' ? JSON.parse(value) : value];
          }),
        );
      }
      const piece = await reader?.read();
      if (piece === undefined || piece.done) return null;
      buffer += piece.value;
    }
  };
  const events = async (count: number): Promise<Block[]> => {
    const found: Block[] = [];
    while (found.length < count) {
      const block = await next();
      if (block === null) break;
      if (block.data !== undefined) found.push(block);
    }
    return found;
  };
  return { response, next, events, abort };
}

describe('the event stream', () => {
  it('begins at once, and carries stored events with their seq as id', async () => {
    const { log } = await start();
    const { response, events } = await follow();
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    log.append('c');
    log.delta('c', 'live');
    const [stored, live] = await events(2);
    expect(stored).toMatchObject({ id: '1', data: { type: 'turn.queued', seq: 1 } });
    expect(live).toMatchObject({ data: { type: 'message.delta', data: { text: 'live' } } });
    expect(live).not.toHaveProperty('id');
    expect(stored).not.toHaveProperty('event');
  });

  it.each([
    ['after', '?after=3', {}],
    ['Last-Event-ID', '', { 'last-event-id': '3' }],
    ['Last-Event-ID before after', '?after=1', { 'last-event-id': '3' }],
  ])('goes on from its place: %s', async (_name, query, headers) => {
    const { log } = await start();
    for (let n = 0; n < 600; n += 1) log.append('c');
    const { events } = await follow(query, headers);
    log.append('c');
    const found = await events(598);
    expect(found.map((block) => block.data?.seq)).toEqual(Array.from({ length: 598 }, (_, n) => n + 4));
  });

  it('leaves out other chats where asked to', async () => {
    const { log } = await start();
    for (const chat of ['a', 'b', 'a', 'b']) log.append(chat);
    const { events } = await follow('?after=0&chat=b');
    expect((await events(2)).map((block) => block.id)).toEqual(['2', '4']);
  });

  it('says resync for a place in the future', async () => {
    await start();
    const { events } = await follow('?after=9');
    expect(await events(1)).toEqual([{ event: 'resync', data: { type: 'resync', world: 'w', seq: 0 } }]);
  });

  it('shows a late joiner the text so far', async () => {
    const { log } = await start();
    log.delta('c', 'one ');
    const { events } = await follow();
    log.delta('c', 'two');
    expect((await events(2)).map((block) => block.data?.data?.text)).toEqual(['one ', 'two']);
  });

  it('sends a comment now and then', async () => {
    await start({ heartbeatMs: 10 });
    const { next } = await follow();
    expect((await next())?.comment).toBe('open');
    expect(await next()).toEqual({ comment: 'ping' });
  });

  it('ends with its world', async () => {
    const { log } = await start();
    const { events } = await follow();
    log.remove();
    expect((await events(9)).map((block) => block.data?.type)).toEqual(['world.deleted']);
  });

  it('ends with its token', async () => {
    const { parley } = await start({ heartbeatMs: 10 });
    const { events } = await follow('', {}, 'viewer-token');
    parley.people.delete('viewer-token');
    expect(await events(1)).toEqual([]);
    expect(running?.connections()).toBe(0);
  });

  it('ends with the server', async () => {
    await start();
    const { events } = await follow();
    await running?.close();
    expect(await events(1)).toEqual([]);
  });

  it('leaves nothing behind when its client goes', async () => {
    const { log } = await start({ heartbeatMs: 5 });
    const { abort, next } = await follow();
    await next();
    expect(running?.connections()).toBe(1);
    abort.abort();
    while ((running?.connections() ?? 0) > 0) await new Promise((resolve) => setImmediate(resolve));
    log.append('c');
  });

  it('is an error before it begins: a world that is not there, a place that is no number, too many', async () => {
    await start({ connections: 1 });
    expect((await follow('?after=x')).response.status).toBe(400);
    expect((await follow('', { 'last-event-id': 'x' })).response.status).toBe(400);
    const headers = { authorization: 'Bearer owner-token' };
    expect((await fetch(`${running?.url}/api/v1/worlds/none/events/stream`, { headers })).status).toBe(404);
    expect((await follow()).response.status).toBe(200);
    expect((await follow()).response.status).toBe(429);
  });

  it('a client that reads nothing is cut off and holds little', async () => {
    const { log } = await start({ stallMs: 100 });
    const { next } = await follow();
    await next();
    for (let n = 0; n < 120; n += 1) {
      log.append('c', true, 200_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    while ((running?.connections() ?? 0) > 0) await new Promise((resolve) => setImmediate(resolve));
  });
});
