import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Grant } from '../core/protocol/entities.ts';
import { GrantList, RuleList } from '../core/protocol/requests.ts';
import { type AskingServer, askingServer } from './support/asking-server.ts';

let server: AskingServer;
let world: string;
beforeAll(async () => {
  server = await askingServer();
  world = await server.newWorld('Home');
  await server.newWorld('Elsewhere');
});
afterAll(() => server.close());
beforeEach(() => {
  server.stamps.length = 0;
});

const W = '/api/v1/worlds';
const stamp = (what: string) => [{ tool: 'stamp', args: { what } }];

it('create_agent is never remembered: it asks every time', async () => {
  const asked = await server.ask(world, [{ tool: 'create_agent', args: { name: 'Robin' } }]);
  expect(asked.approval.kind).toBe('create_agent');
  for (const remember of ['chat', 'agent', 'world']) {
    expect(await server.answer(asked, { optionId: 'yes', remember })).toMatchObject({
      status: 400,
      body: { error: 'invalid', message: expect.stringContaining('remember') },
    });
  }
  expect((await server.read(asked)).status).toBe('pending');
  expect((await server.call('GET', `${W}/${world}/agents/robin`)).status).toBe(404);
  expect((await server.answer(asked, { optionId: 'yes', remember: 'once' })).status).toBe(200);
  await server.idle(asked);
  expect(await server.call('GET', `${W}/${world}/agents/robin`)).toMatchObject({
    status: 200,
    body: { source: 'tool', createdBy: 'a' },
  });
});

it('a remembered yes holds for the same arguments only, is listed, and can be taken back', async () => {
  const asked = await server.ask(world, stamp('mail'));
  await server.answer(asked, { optionId: 'yes', remember: 'world' }, { token: server.member });
  const grants = async (): Promise<Grant[]> =>
    GrantList.parse((await server.call('GET', `${W}/${world}/grants`)).body).grants;
  const [grant] = await grants();
  expect(grant).toMatchObject({ scope: 'world', tool: 'stamp', argsHash: asked.approval.argsHash, by: 'Mira' });
  const chat = await server.newChat(world);
  expect((await server.say(world, chat, stamp('mail'))).approvals).toEqual([]);
  expect(server.stamps).toEqual([{ what: 'mail' }, { what: 'mail' }]);
  expect((await server.say(world, chat, stamp('mail all'))).approvals).toHaveLength(1);
  await server.call('POST', `${W}/${world}/chats/${chat}/stop`);

  const path = `${W}/${world}/grants/${grant?.id}`;
  expect((await server.call('DELETE', `${W}/elsewhere/grants/${grant?.id}`)).status).toBe(404);
  expect((await server.call('DELETE', path, undefined, { token: server.viewer })).status).toBe(403);
  expect((await server.call('DELETE', path, undefined, { token: server.member })).status).toBe(204);
  expect((await server.call('DELETE', path)).status).toBe(404);
  expect(await grants()).toEqual([]);
  expect((await server.say(world, await server.newChat(world), stamp('mail'))).approvals).toHaveLength(1);
});

it('rules are the owner’s: others read them, and what they deny is not even asked', async () => {
  const ruled = await server.newWorld('Ruled');
  const path = `${W}/${ruled}/rules`;
  const rules = [{ effect: 'deny', tool: 'stamp', agent: 'a' }];
  expect((await server.call('GET', path)).body).toEqual({ rules: [] });
  for (const token of [server.member, server.viewer]) {
    expect((await server.call('PUT', path, { rules }, { token })).status).toBe(403);
  }
  for (const wrong of [{}, rules, { rules: [{ effect: 'maybe', tool: 'x' }] }, { rules: [{ effect: 'deny' }] }]) {
    expect((await server.call('PUT', path, wrong)).status).toBe(400);
  }
  const put = await server.call('PUT', path, { rules });
  expect({ status: put.status, body: RuleList.parse(put.body) }).toEqual({ status: 200, body: { rules } });
  expect((await server.call('GET', path, undefined, { token: server.viewer })).body).toEqual({ rules });
  const posted = await server.say(ruled, await server.newChat(ruled), stamp('no'));
  expect(posted.approvals).toEqual([]);
  expect(server.stamps).toEqual([]);
  await server.call('PUT', path, { rules: [] });
  expect((await server.say(ruled, await server.newChat(ruled), stamp('asks'))).approvals).toHaveLength(1);
});
