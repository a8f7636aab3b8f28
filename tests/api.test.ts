import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Chat, type Message, ProviderStatus, Turn, World, WorldAgent } from '../core/protocol/entities.ts';
import { StoredEvent } from '../core/protocol/events.ts';
import { MessagePage, Posted, PostedAndIdle, WorldDetail, WorldUsage } from '../core/protocol/requests.ts';
import { type RealServer, realServer } from '../server/testing/real-server.ts';

let server: RealServer;
beforeAll(async () => {
  server = await realServer({ demo: true });
});
afterAll(() => server.close());

const W = '/api/v1/worlds';
const idOf = (body: Record<string, unknown>): string => String(body['id']);

async function newWorld(name: string): Promise<string> {
  const { status, body } = await server.call('POST', W, { name });
  expect(status).toBe(201);
  return idOf(body);
}
async function newChat(world: string): Promise<string> {
  return idOf((await server.call('POST', `${W}/${world}/chats`, {})).body);
}
/** A chat of the demo world, whose agents need no network. */
const demoChat = () => newChat('demo');

describe('worlds', () => {
  it('are made, read, changed, listed and deleted', async () => {
    const made = await server.call('POST', W, { name: 'Room One', turnLimit: null });
    expect(made.status).toBe(201);
    expect(World.parse(made.body)).toMatchObject({ id: 'room-one', turnLimit: null, hopLimit: 20 });
    expect(WorldDetail.parse((await server.call('GET', `${W}/room-one`)).body)).toMatchObject({
      agents: [],
      chats: [],
    });
    const changed = await server.call('PATCH', `${W}/room-one`, { description: 'ours' });
    expect(changed).toMatchObject({ status: 200, body: { description: 'ours', turnLimit: null } });
    const { worlds } = (await server.call('GET', W)).body as { worlds: World[] };
    expect(worlds.map((world) => world.id)).toContain('room-one');
    expect((await server.call('DELETE', `${W}/room-one`)).status).toBe(204);
    expect((await server.call('GET', `${W}/room-one`)).status).toBe(404);
  });

  it('of a taken name are a conflict', async () => {
    await newWorld('Taken');
    expect(await server.call('POST', W, { name: 'taken' })).toMatchObject({
      status: 409,
      body: { error: 'world_exists' },
    });
  });

  it('tell what they used and find what was said', async () => {
    const chat = await demoChat();
    await server.call('POST', `${W}/demo/chats/${chat}/messages?wait=idle`, { content: 'xylophone please' });
    const usage = WorldUsage.parse((await server.call('GET', `${W}/demo/usage`)).body);
    expect(usage.total.calls).toBeGreaterThan(0);
    const { messages } = (await server.call('GET', `${W}/demo/search?q=xylophone`)).body as { messages: Message[] };
    expect(messages.map((message) => message.content)).toContain('xylophone please');
  });
});

describe('agents', () => {
  it('are made, read, changed, listed and removed', async () => {
    const world = await newWorld('Agents');
    const made = await server.call('POST', `${W}/${world}/agents`, {
      name: 'Ada L',
      provider: 'script',
      model: 'demo:writer',
    });
    expect(made.status).toBe(201);
    expect(WorldAgent.parse(made.body).id).toBe('ada-l');
    const chosen = await server.call('POST', `${W}/${world}/agents`, { name: 'Other', id: 'o-1' });
    expect(chosen).toMatchObject({ status: 201, body: { id: 'o-1' } });
    expect(await server.call('PATCH', `${W}/${world}/agents/o-1`, { status: 'inactive' })).toMatchObject({
      status: 200,
      body: { status: 'inactive', name: 'Other' },
    });
    expect(await server.call('GET', `${W}/${world}/agents/o-1`)).toMatchObject({
      status: 200,
      body: { status: 'inactive' },
    });
    const { agents } = (await server.call('GET', `${W}/${world}/agents`)).body as { agents: WorldAgent[] };
    expect(agents.map((agent) => agent.id)).toEqual(['ada-l', 'o-1']);
    expect((await server.call('DELETE', `${W}/${world}/agents/o-1`)).status).toBe(204);
    expect((await server.call('GET', `${W}/${world}/agents/o-1`)).status).toBe(404);
  });

  it('of a taken, reserved or empty name are refused', async () => {
    const world = await newWorld('Agents two');
    await server.call('POST', `${W}/${world}/agents`, { name: 'Ada' });
    expect((await server.call('POST', `${W}/${world}/agents`, { name: 'ADA' })).body['error']).toBe('agent_exists');
    expect((await server.call('POST', `${W}/${world}/agents`, { name: 'human' })).body['error']).toBe('reserved_id');
    expect((await server.call('POST', `${W}/${world}/agents`, { name: '!!!' })).body['error']).toBe('invalid_id');
  });
});

describe('chats and messages', () => {
  it('chats are made, renamed, paused, resumed, listed and deleted', async () => {
    const world = await newWorld('Chats');
    const chat = await newChat(world);
    const at = `${W}/${world}/chats/${chat}`;
    expect(Chat.parse((await server.call('PATCH', at, { title: 'Plans' })).body).title).toBe('Plans');
    expect((await server.call('POST', `${at}/pause`)).body['paused']).toBe(true);
    expect((await server.call('POST', `${at}/resume`, {})).body['paused']).toBe(false);
    expect(Chat.parse((await server.call('GET', at)).body).id).toBe(chat);
    expect((await server.call('GET', `${W}/${world}/chats`)).body).toMatchObject({ chats: [{ id: chat }] });
    expect((await server.call('DELETE', at)).status).toBe(204);
    expect((await server.call('GET', at)).status).toBe(404);
  });

  it('a message is answered as soon as it is stored, with its receipt and turns', async () => {
    const chat = await demoChat();
    const { status, body } = await server.call('POST', `${W}/demo/chats/${chat}/messages`, {
      content: '@planner hello',
    });
    expect(status).toBe(201);
    const posted = Posted.parse(body);
    expect(posted.message).toMatchObject({ seq: 1, content: '@planner hello', sender: { kind: 'human' } });
    expect(posted.routing.woke).toEqual([{ agentId: 'planner', reason: 'address' }]);
    expect(posted.turns).toEqual([{ id: expect.any(String), agentId: 'planner' }]);
  });

  it('waits until the chat is idle where asked to', async () => {
    const chat = await demoChat();
    const { body } = await server.call('POST', `${W}/demo/chats/${chat}/messages?wait=idle&timeoutMs=20000`, {
      content: '@planner hello',
    });
    const posted = PostedAndIdle.parse(body);
    expect(posted).toMatchObject({ idle: true, approvals: [] });
    expect(posted.messages.map((message) => message.sender.kind)).toContain('agent');
    const { turns } = (await server.call('GET', `${W}/demo/chats/${chat}/turns`)).body as { turns: unknown[] };
    expect(Turn.parse(turns[0]).state).toBe('done');
  });

  it('answers a wait that is too short with idle false', async () => {
    const chat = await demoChat();
    await server.call('POST', `${W}/demo/chats/${chat}/pause`);
    const { status, body } = await server.call('POST', `${W}/demo/chats/${chat}/messages?wait=idle&timeoutMs=1`, {
      content: '@planner hello',
    });
    expect({ status, idle: body['idle'] }).toEqual({ status: 201, idle: false });
    expect((await server.call('POST', `${W}/demo/chats/${chat}/stop`)).body).toEqual({ stopped: 1 });
  });

  it('pages by seq', async () => {
    const world = await newWorld('Pages');
    const chat = await newChat(world);
    const at = `${W}/${world}/chats/${chat}/messages`;
    for (let n = 1; n <= 7; n += 1) await server.call('POST', at, { content: `m${n}` });
    const page = async (query: string) => MessagePage.parse((await server.call('GET', `${at}?${query}`)).body);
    const newest = await page('limit=3');
    expect(newest.messages.map((m) => m.seq)).toEqual([5, 6, 7]);
    expect((await page(`limit=3&before=${newest.next}`)).messages.map((m) => m.seq)).toEqual([2, 3, 4]);
    expect((await page('limit=3&after=2')).messages.map((m) => m.seq)).toEqual([3, 4, 5]);
    expect((await page('limit=100000')).messages).toHaveLength(7);
  });

  it('takes 256 KB and not a byte more', async () => {
    const world = await newWorld('Sizes');
    const at = `${W}/${world}/chats/${await newChat(world)}/messages`;
    expect((await server.call('POST', at, { content: 'x'.repeat(262_144) })).status).toBe(201);
    expect(await server.call('POST', at, { content: 'x'.repeat(262_145) })).toMatchObject({
      status: 413,
      body: { error: 'too_large' },
    });
    expect(await server.call('POST', at, { content: '' })).toMatchObject({
      status: 400,
      body: { error: 'empty_message' },
    });
  });

  it('forwards a message to an agent that was only named', async () => {
    const chat = await demoChat();
    const { body } = await server.call('POST', `${W}/demo/chats/${chat}/messages?wait=idle`, {
      content: '@planner hello',
    });
    const { message } = Posted.parse({ message: body['message'], routing: body['routing'], turns: body['turns'] });
    const forwarded = await server.call('POST', `${W}/demo/chats/${chat}/messages/${message.id}/forward`, {
      agentId: 'writer',
    });
    expect(forwarded.status).toBe(201);
    expect(Turn.parse(forwarded.body)).toMatchObject({ agentId: 'writer', trigger: { reason: 'forward' } });
    expect(
      (await server.call('POST', `${W}/demo/chats/${chat}/messages/none/forward`, { agentId: 'writer' })).status,
    ).toBe(404);
  });

  it('has nothing to continue where no limit was reached', async () => {
    const chat = await demoChat();
    expect(await server.call('POST', `${W}/demo/chats/${chat}/continue`)).toMatchObject({
      status: 409,
      body: { error: 'nothing_to_continue' },
    });
  });
});

describe('Idempotency-Key', () => {
  it.each(['', '?wait=idle'])('gives the same answer once%s, and refuses another body', async (query) => {
    const chat = await demoChat();
    const at = `${W}/demo/chats/${chat}/messages`;
    const key = `k${query}`;
    const first = await server.call('POST', at, { content: 'hello there' }, { key });
    const again = await server.call('POST', `${at}${query}`, { content: 'hello there' }, { key });
    expect(again.body).toMatchObject({ message: { id: (first.body['message'] as Message).id } });
    expect(await server.call('POST', at, { content: 'other' }, { key })).toMatchObject({
      status: 409,
      body: { error: 'idempotency_mismatch' },
    });
  });

  it.each([
    ['worlds', { name: 'Once' }, W],
    ['agents', { name: 'Once' }, `${W}/demo/agents`],
    ['chats', { title: 'Once' }, `${W}/demo/chats`],
    ['tokens', { role: 'viewer', label: 'Once' }, '/api/v1/tokens'],
  ])('holds for %s', async (_name, body, path) => {
    const first = await server.call('POST', path, body, { key: 'once' });
    const again = await server.call('POST', path, body, { key: 'once' });
    expect(first.status).toBe(201);
    expect({ status: again.status, id: again.body['id'] }).toEqual({ status: 201, id: first.body['id'] });
  });

  it('holds for a forward, also after its agent was muted, and another key wakes once more', async () => {
    const world = await newWorld('Forwards');
    await server.call('POST', `${W}/${world}/agents`, { name: 'Bo', provider: 'script', model: 'demo:writer' });
    const chat = await newChat(world);
    await server.call('POST', `${W}/${world}/chats/${chat}/pause`);
    const posted = await server.call('POST', `${W}/${world}/chats/${chat}/messages`, { content: 'hello' });
    const at = `${W}/${world}/chats/${chat}/messages/${(posted.body['message'] as Message).id}/forward`;
    const forward = (agentId: string, key: string) => server.call('POST', at, { agentId }, { key });
    const first = await forward('bo', 'f1');
    expect(first.status).toBe(201);
    const other = await forward('bo', 'f2');
    expect(other.body['id']).not.toBe(first.body['id']);
    await server.call('PATCH', `${W}/${world}/agents/bo`, { status: 'inactive' });
    const again = await forward('bo', 'f1');
    expect({ status: again.status, body: again.body }).toEqual({ status: 201, body: first.body });
    expect(await forward('bo', 'f3')).toMatchObject({ status: 409, body: { error: 'conflict' } });
    expect(await forward('cy', 'f1')).toMatchObject({ status: 409, body: { error: 'idempotency_mismatch' } });
    expect(await forward('cy', 'f4')).toMatchObject({ status: 404, body: { error: 'not_found' } });
    const { turns } = (await server.call('GET', `${W}/${world}/chats/${chat}/turns`)).body as { turns: Turn[] };
    expect(turns.filter((turn) => turn.trigger.reason === 'forward')).toHaveLength(2);
  });

  it('that cannot be one is refused', async () => {
    expect(await server.call('POST', W, { name: 'Key' }, { key: 'x'.repeat(256) })).toMatchObject({
      status: 400,
      body: { error: 'invalid' },
    });
  });
});

describe('access', () => {
  it('hands out tokens that do what their role may, and takes them back', async () => {
    const made = await server.call('POST', '/api/v1/tokens', { role: 'viewer', label: 'Vic' });
    expect(made).toMatchObject({ status: 201, body: { role: 'viewer', label: 'Vic', token: expect.any(String) } });
    const token = String(made.body['token']);
    const listed = (await server.call('GET', '/api/v1/tokens')).body as { tokens: Record<string, unknown>[] };
    expect(listed.tokens.find((entry) => entry['id'] === made.body['id'])).not.toHaveProperty('token');
    expect((await server.call('GET', W, undefined, { token })).status).toBe(200);
    expect((await server.call('GET', '/api/v1/session', undefined, { token })).body).toEqual({
      role: 'viewer',
      name: 'Vic',
    });
    const chat = await demoChat();
    for (const [method, path, body] of [
      ['POST', W, { name: 'Nope' }],
      ['POST', `${W}/demo/chats/${chat}/messages`, { content: 'hello' }],
      ['POST', `${W}/demo/chats/${chat}/stop`, {}],
      ['DELETE', `${W}/demo`, undefined],
      ['PUT', '/api/v1/models/openai', { apiKey: 'x' }],
      ['GET', '/api/v1/tokens', undefined],
    ] as const) {
      expect(await server.call(method, path, body, { token })).toMatchObject({
        status: 403,
        body: { error: 'forbidden' },
      });
    }
    expect((await server.call('DELETE', `/api/v1/tokens/${String(made.body['id'])}`)).status).toBe(204);
    expect((await server.call('GET', W, undefined, { token })).status).toBe(401);
  });

  it('a browser signs in once and then needs only its cookie', async () => {
    const headers = { 'content-type': 'application/json', origin: server.url };
    const body = JSON.stringify({ token: server.parley.ownerToken });
    const opened = await fetch(`${server.url}/api/v1/session`, { method: 'POST', headers, body });
    const cookie = opened.headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^parley_session=[^;]+;/);
    for (const part of ['HttpOnly', 'SameSite=Strict', 'Path=/']) expect(cookie).toContain(part);
    const listed = await fetch(`${server.url}${W}`, { headers: { cookie: cookie.split(';')[0] ?? '' } });
    expect(listed.status).toBe(200);
  });

  it('guessing a token is slowed down', async () => {
    const other = await realServer();
    const guess = () => other.call('POST', '/api/v1/session', { token: 'wrong' }, { token: null });
    const statuses: number[] = [];
    for (let n = 0; n < 11; n += 1) statuses.push((await guess()).status);
    await other.close();
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
  });

  it('tells a person on this machine where the token is', async () => {
    const { status, body } = await server.call('GET', W, undefined, { token: null });
    expect(status).toBe(401);
    expect(body['details']).toEqual({ tokenFile: server.parley.tokenFile });
  });
});

describe('the rest', () => {
  it('lists providers', async () => {
    const { body } = await server.call('GET', '/api/v1/models');
    expect((body['providers'] as unknown[]).map((one) => ProviderStatus.parse(one).id)).toContain('anthropic');
  });

  it('knows nothing of a provider that nobody has', async () => {
    for (const [method, path] of [
      ['PUT', '/api/v1/models/none'],
      ['POST', '/api/v1/models/none/test'],
    ] as const) {
      expect(await server.call(method, path, {})).toMatchObject({ status: 404, body: { error: 'not_found' } });
    }
  });

  it('reads the log, gap-free', async () => {
    const { body } = await server.call('GET', `${W}/demo/events?limit=500`);
    const events = (body['events'] as unknown[]).map((event) => StoredEvent.parse(event));
    expect(events.map((event) => event.seq)).toEqual(events.map((_, n) => n + 1));
    const after = await server.call('GET', `${W}/demo/events?after=2&limit=1`);
    expect(after.body).toMatchObject({ events: [{ seq: 3 }] });
    expect((await server.call('GET', `${W}/none/events`)).status).toBe(404);
  });

  it('is alive without a token', async () => {
    expect(await server.call('GET', '/health', undefined, { token: null })).toMatchObject({
      status: 200,
      body: { status: 'ok', version: '0.0.0' },
    });
  });

  it('describes every call with its answer and errors, and only named shapes it holds', async () => {
    const { body } = await server.call('GET', '/api/v1/openapi.json');
    const paths = body['paths'] as Record<
      string,
      Record<string, { responses: Record<string, unknown>; summary?: string }>
    >;
    const calls = Object.entries(paths).flatMap(([path, of]) =>
      Object.entries(of).map(([method, call]) => ({ path, method, call })),
    );
    expect(calls.length).toBeGreaterThan(35);
    for (const { path, method, call } of calls) {
      expect(call.summary, `${method} ${path}`).toEqual(expect.any(String));
      expect(
        Object.keys(call.responses).some((status) => status.startsWith('2')),
        `${method} ${path}`,
      ).toBe(true);
      if (path !== '/health') expect(Object.keys(call.responses), `${method} ${path}`).toContain('401');
    }
    const schemas = Object.keys((body['components'] as { schemas: Record<string, unknown> }).schemas);
    const refs = [...JSON.stringify(body).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1]);
    expect(refs.length).toBeGreaterThan(20);
    for (const ref of refs) expect(schemas).toContain(ref?.replace('#/components/schemas/', ''));
  });

  it('has a page to read it, whose scripts are files of its own', async () => {
    const page = await fetch(`${server.url}/docs`);
    const html = await page.text();
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");
    const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '');
    expect(files).toHaveLength(3);
    for (const file of files) expect((await fetch(`${server.url}${file}`)).status).toBe(200);
    expect((await fetch(`${server.url}/docs/package.json`)).status).toBe(404);
    expect((await fetch(`${server.url}/docs/..%2fpackage.json`)).status).toBe(404);
  });
});
