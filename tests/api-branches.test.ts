import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Chat, type Message, Turn } from '../core/protocol/entities.ts';
import { BranchList, MessagePage, Posted } from '../core/protocol/requests.ts';
import { type RealServer, realServer } from '../server/testing/real-server.ts';

let server: RealServer;
let chat: string;
beforeAll(async () => {
  server = await realServer({ demo: false });
  expect((await server.call('POST', '/api/v1/worlds', { name: 'Room' })).status).toBe(201);
  // No script has this name: every turn fails at once.
  const agent = { name: 'Ann', provider: 'script', model: 'demo:none' };
  expect((await server.call('POST', '/api/v1/worlds/room/agents', agent)).status).toBe(201);
});
afterAll(() => server.close());
beforeEach(async () => {
  chat = `/api/v1/worlds/room/chats/${String((await server.call('POST', '/api/v1/worlds/room/chats', {})).body['id'])}`;
});

const say = async (content: string): Promise<Message> =>
  Posted.parse((await server.call('POST', `${chat}/messages`, { content })).body).message;
const texts = async (query = ''): Promise<string[]> =>
  MessagePage.parse((await server.call('GET', `${chat}/messages${query}`)).body).messages.map(({ content }) => content);

describe('branches over REST', () => {
  it('an edit answers as a post does, once per key, and the old branch is listed and readable', async () => {
    const first = await say('@human one');
    const edit = () =>
      server.call('PATCH', `${chat}/messages/${first.id}`, { content: '@human two' }, { key: 'edit-1' });
    const edited = await edit();
    expect(edited.status).toBe(201);
    expect(Posted.parse(edited.body).message).toMatchObject({ seq: 2, content: '@human two' });
    expect((await edit()).body).toEqual(edited.body);
    expect(await texts()).toEqual(['@human two']);
    const { branches } = BranchList.parse((await server.call('GET', `${chat}/branches`)).body);
    expect(branches.map(({ headId }) => headId)).toEqual([first.id, Posted.parse(edited.body).message.id]);
    expect(await texts(`?head=${first.id}`)).toEqual(['@human one']);
    const switched = await server.call('PATCH', chat, { head: first.id });
    expect(Chat.parse(switched.body).head).toBe(first.id);
    expect(await texts()).toEqual(['@human one']);
  });

  it('deletes, and forks once per key', async () => {
    const first = await say('@human one');
    const second = await say('@human two');
    expect((await server.call('DELETE', `${chat}/messages/${first.id}`)).status).toBe(204);
    expect(await texts()).toEqual(['', '@human two']);
    const fork = () => server.call('POST', `${chat}/fork`, { messageId: second.id }, { key: 'fork-1' });
    const made = await fork();
    expect(made.status).toBe(201);
    expect(Chat.parse(made.body)).toMatchObject({ title: 'Fork of @human one', lastSeq: 2 });
    expect((await fork()).body).toEqual(made.body);
  });

  it('answers again and tries again', async () => {
    const first = await say('@Ann one');
    await server.call('POST', `${chat}/messages?wait=idle`, { content: '@human wait' });
    const listed = (await server.call('GET', `${chat}/turns`)).body as { turns: Turn[] };
    const retried = await server.call('POST', `${chat}/turns/${listed.turns[0]?.id}/retry`, {});
    expect(retried.status).toBe(201);
    expect(Turn.parse(retried.body)).toMatchObject({ agentId: 'ann', trigger: { seq: first.seq } });
    const again = await server.call('POST', `${chat}/messages/${first.id}/regenerate`, {});
    expect(again).toMatchObject({ status: 201, body: { turns: [{ agentId: 'ann', trigger: { seq: first.seq } }] } });
  });

  it('refuses what is not there, not theirs, or not possible', async () => {
    const message = await say('@human one');
    const refused = async (method: string, path: string, body?: unknown) => {
      const { status, body: answer } = await server.call(method, `${chat}${path}`, body);
      return [status, answer['error']];
    };
    expect(await refused('PATCH', '/messages/none', { content: 'x' })).toEqual([404, 'not_found']);
    expect(await refused('PATCH', `/messages/${message.id}`, { content: ' ' })).toEqual([400, 'empty_message']);
    expect(await refused('PATCH', `/messages/${message.id}`, { text: 'x' })).toEqual([400, 'invalid']);
    expect(await refused('PATCH', '', { head: 'none' })).toEqual([404, 'not_found']);
    expect(await refused('PATCH', '', { head: 7 })).toEqual([400, 'invalid']);
    expect(await refused('GET', '/messages?head=none')).toEqual([404, 'not_found']);
    expect(await refused('DELETE', '/messages/none')).toEqual([404, 'not_found']);
    expect(await refused('POST', '/fork', { messageId: 'none' })).toEqual([404, 'not_found']);
    expect(await refused('POST', '/turns/none/retry', {})).toEqual([404, 'not_found']);
    expect(await refused('POST', `/messages/${message.id}/regenerate`, {})).toEqual([409, 'conflict']);
  });
});
