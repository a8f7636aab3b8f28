import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Approval } from '../core/protocol/entities.ts';
import { StoredEvent } from '../core/protocol/events.ts';
import { AnsweredApproval, ApprovalList } from '../core/protocol/requests.ts';
import { type Asked, type AskingServer, askingServer } from './support/asking-server.ts';

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
const approvalsAt = async (path: string): Promise<Approval[]> =>
  ApprovalList.parse((await server.call('GET', path)).body).approvals;
const idsOf = (approvals: readonly Approval[]) => approvals.map((approval) => approval.id);
async function eventsOf(asked: Asked): Promise<StoredEvent[]> {
  const { body } = await server.call('GET', `${W}/${asked.world}/events?limit=500`);
  return (body['events'] as unknown[])
    .map((event) => StoredEvent.parse(event))
    .filter((event) => 'chat' in event && event.chat === asked.chat);
}

describe('what waits for a person', () => {
  it('is told by a wait for idle, the world’s list, the inbox and its own address', async () => {
    const asked = await server.ask(world, stamp('seen'));
    expect(asked.posted).toMatchObject({ idle: true, approvals: [{ id: asked.approval.id }] });
    expect(asked.approval).toMatchObject({
      ...{ worldId: world, chatId: asked.chat, agentId: 'a', kind: 'tool', status: 'pending' },
      ...{ tool: 'stamp', args: { what: 'seen' }, defaultOptionId: 'no' },
    });
    const elsewhere = await server.ask('elsewhere', stamp('there'));
    const read = await server.call('GET', `${W}/${world}/approvals/${asked.approval.id}`);
    expect({ status: read.status, body: Approval.parse(read.body) }).toEqual({ status: 200, body: asked.approval });
    expect(idsOf(await approvalsAt(`${W}/${world}/approvals?status=pending`))).toEqual([asked.approval.id]);
    expect(idsOf(await approvalsAt(`${W}/${world}/approvals`))).toEqual([asked.approval.id]);
    expect(idsOf(await approvalsAt('/api/v1/approvals'))).toEqual([asked.approval.id, elsewhere.approval.id]);
    await server.answer(asked, { optionId: 'no' });
    await server.answer(elsewhere, { optionId: 'no' });
    expect(await approvalsAt('/api/v1/approvals')).toEqual([]);
    expect(await approvalsAt(`${W}/${world}/approvals?status=pending`)).toEqual([]);
    expect(idsOf(await approvalsAt('/api/v1/approvals?status=denied'))).toContain(elsewhere.approval.id);
    expect(idsOf(await approvalsAt(`${W}/${world}/approvals`))).toEqual([asked.approval.id]);
  });

  it('is no other chat’s', async () => {
    const asked = await server.ask(world, stamp('mine'));
    const other = await server.call('POST', `${W}/${world}/chats/${await server.newChat(world)}/messages?wait=idle`, {
      content: '@a hello',
    });
    expect(other.body).toMatchObject({ idle: true, approvals: [] });
    await server.answer(asked, { optionId: 'no' });
  });

  it.each([
    ['GET', '/api/v1/approvals?status=open', 400],
    ['GET', `${W}/home/approvals?status=`, 400],
    ['GET', `${W}/home/approvals?state=pending`, 400],
    ['GET', `${W}/none/approvals`, 404],
    ['GET', `${W}/home/approvals/none`, 404],
    ['GET', `${W}/none/grants`, 404],
    ['DELETE', `${W}/home/grants/none`, 404],
    ['GET', `${W}/none/rules`, 404],
  ])('%s %s is answered with %i', async (method, path, status) => {
    expect((await server.call(method, path)).status).toBe(status);
  });
});

describe('an answer', () => {
  it('that is yes runs what was shown, once; every later one is refused with the final state', async () => {
    const asked = await server.ask(world, stamp('once'));
    expect(server.stamps).toEqual([]);
    const first = await server.answer(asked, { optionId: 'yes', chatId: asked.chat, text: 'go on' });
    expect(first.status).toBe(200);
    expect(AnsweredApproval.parse(first.body)).toMatchObject({
      accepted: true,
      approval: { status: 'answered', resolution: { optionId: 'yes', by: 'Owner', text: 'go on' } },
    });
    await server.idle(asked);
    for (const optionId of ['no', 'yes']) {
      const later = await server.answer(asked, { optionId }, { token: server.member });
      expect(later.status).toBe(409);
      expect(later.body).toEqual({
        accepted: false,
        reason: expect.stringContaining('answered'),
        approval: first.body['approval'],
      });
    }
    expect(server.stamps).toEqual([{ what: 'once' }]);
    expect((await eventsOf(asked)).filter(({ type }) => type === 'approval.answered')).toHaveLength(1);
  });

  it.each([{ optionId: 'no', text: 'not today' }, { skipped: true }])(
    '%j is a denial: nothing runs, and the log tells',
    async (body) => {
      const asked = await server.ask(world, stamp('never'));
      expect((await server.answer(asked, body, { token: server.member })).body).toMatchObject({
        accepted: true,
        approval: { status: 'denied', resolution: { by: 'Mira', reason: 'user_denied' } },
      });
      await server.idle(asked);
      expect(server.stamps).toEqual([]);
      const told = (await eventsOf(asked)).find(({ type }) => type === 'approval.answered');
      expect(told?.data).toMatchObject({ approval: { id: asked.approval.id, status: 'denied' } });
    },
  );

  describe('that is not one', () => {
    let asked: Asked;
    let other: Asked;
    beforeAll(async () => {
      asked = await server.ask(world, stamp('shown'));
      other = await server.ask('elsewhere', stamp('there'));
    });

    const yes = { optionId: 'yes' };
    it.each<[string, number, string, () => Parameters<AskingServer['answer']>]>([
      ['an option that it does not have', 400, 'invalid', () => [asked, { optionId: 'maybe' }]],
      ['the label of an option', 400, 'invalid', () => [asked, { optionId: 'Allow' }]],
      ['no option', 400, 'invalid', () => [asked, {}]],
      ['only words', 400, 'invalid', () => [asked, { text: 'yes' }]],
      ['an option that is no text', 400, 'invalid', () => [asked, { optionId: true }]],
      ['another option among the answers', 400, 'invalid', () => [asked, { answers: [answers('allow', 'all')] }]],
      ['skipped that is false', 400, 'invalid', () => [asked, { skipped: false, ...yes }]],
      ['another chat', 400, 'invalid', () => [asked, { ...yes, chatId: other.chat }]],
      ['a chat that is not there', 400, 'invalid', () => [asked, { ...yes, chatId: 'none' }]],
      ['other arguments', 400, 'invalid', () => [asked, { ...yes, args: { what: 'else' } }]],
      ['another hash', 400, 'invalid', () => [asked, { ...yes, argsHash: 'ff' }]],
      ['a scope that is not there', 400, 'invalid', () => [asked, { ...yes, remember: 'always' }]],
      ['a no to remember', 400, 'invalid', () => [asked, { optionId: 'no', remember: 'world' }]],
      ['another world', 404, 'not_found', () => [{ ...asked, world: 'elsewhere' }, yes]],
      ['another world’s approval', 404, 'not_found', () => [{ ...other, world }, yes]],
      ['a world that is not there', 404, 'not_found', () => [{ ...asked, world: 'none' }, yes]],
      ['an approval that is not there', 404, 'not_found', () => [{ world, approval: { id: 'a_none' } }, yes]],
      ['a viewer', 403, 'forbidden', () => [asked, yes, { token: server.viewer }]],
      ['nobody', 401, 'unauthorized', () => [asked, yes, { token: null }]],
      ['a key that is none', 400, 'invalid', () => [asked, yes, { key: 'x'.repeat(256) }]],
    ])('%s: %i, and it waits on', async (_name, status, error, make) => {
      expect(await server.answer(...make())).toMatchObject({ status, body: { error, message: expect.any(String) } });
      expect((await server.read(asked)).status).toBe('pending');
      expect((await server.read(other)).status).toBe('pending');
      expect(server.stamps).toEqual([]);
    });

    it('leaves the approval to the next answer', async () => {
      expect((await server.answer(asked, yes)).body).toMatchObject({ accepted: true });
      await server.idle(asked);
      expect(server.stamps).toEqual([{ what: 'shown' }]);
      await server.answer(other, { optionId: 'no' });
    });
  });

  it('after stop is refused with the cancelled approval, and nothing runs', async () => {
    const asked = await server.ask(world, stamp('stopped'));
    const stopped = await server.call('POST', `${W}/${world}/chats/${asked.chat}/stop`);
    expect(stopped.body).toEqual({ stopped: 1 });
    expect(await server.answer(asked, { optionId: 'yes' })).toMatchObject({
      status: 409,
      body: { accepted: false, reason: expect.any(String), approval: { status: 'cancelled' } },
    });
    await server.idle(asked);
    expect(server.stamps).toEqual([]);
    expect((await server.say(world, asked.chat, stamp('again'))).approvals).toHaveLength(1);
    await server.call('POST', `${W}/${world}/chats/${asked.chat}/stop`);
  });

  it('after its chat was deleted finds nothing, and nothing runs', async () => {
    const asked = await server.ask(world, stamp('deleted'));
    expect((await server.call('DELETE', `${W}/${world}/chats/${asked.chat}`)).status).toBe(204);
    expect(await server.answer(asked, { optionId: 'yes' })).toMatchObject({
      status: 404,
      body: { error: 'not_found' },
    });
    expect(idsOf(await approvalsAt('/api/v1/approvals'))).not.toContain(asked.approval.id);
    expect(server.stamps).toEqual([]);
  });

  it('of twenty at once is accepted exactly once, and all others show the one final state', async () => {
    const asked = await server.ask(world, stamp('race'));
    const given = await Promise.all(
      Array.from({ length: 20 }, (_, n) => server.answer(asked, { optionId: n % 2 ? 'yes' : 'no' }, { key: `r${n}` })),
    );
    const accepted = given.filter(({ status }) => status === 200);
    expect(accepted).toHaveLength(1);
    for (const { status, body } of given.filter((one) => one !== accepted[0])) {
      expect({ status, body }).toEqual({
        status: 409,
        body: { accepted: false, reason: expect.any(String), approval: accepted[0]?.body['approval'] },
      });
    }
    await server.idle(asked);
    const { resolution } = await server.read(asked);
    expect(server.stamps).toEqual(resolution?.optionId === 'yes' ? [{ what: 'race' }] : []);
    expect((await eventsOf(asked)).filter(({ type }) => type === 'approval.answered')).toHaveLength(1);
  });

  it('sent again with its key gets the first answer; the key with another answer is refused', async () => {
    const asked = await server.ask(world, stamp('replayed'));
    const first = await server.answer(asked, { optionId: 'yes', text: 'ok' }, { key: 'same' });
    const again = await server.answer(asked, { text: 'ok', optionId: 'yes' }, { key: 'same' });
    expect(first.status).toBe(200);
    expect({ status: again.status, body: again.body }).toEqual({ status: 200, body: first.body });
    expect(await server.answer(asked, { optionId: 'no' }, { key: 'same' })).toMatchObject({
      status: 409,
      body: { error: 'idempotency_mismatch' },
    });
    const other = await server.ask(world, stamp('fresh'));
    expect((await server.answer(other, { optionId: 'no' }, { key: 'same' })).body).toMatchObject({ accepted: true });
    const others = await server.answer(asked, { optionId: 'yes', text: 'ok' }, { key: 'same', token: server.member });
    expect(others).toMatchObject({ status: 409, body: { accepted: false } });
    await server.idle(asked);
    expect(server.stamps).toEqual([{ what: 'replayed' }]);
  });

  it('to the questions of an agent names options and words, and every question', async () => {
    const questions = [
      { id: 'colour', question: 'Which colour?', options: [{ id: 'red', label: 'Red' }] },
      { id: 'why', question: 'Why?' },
    ];
    const asked = await server.ask(world, [{ tool: 'ask_user', args: { questions } }]);
    expect(asked.approval).toMatchObject({ kind: 'ask_user', options: [{ id: 'red', label: 'Red' }] });
    const why = { questionId: 'why', optionIds: [], text: 'it is warm' };
    for (const wrong of [[answers('colour', 'red')], [answers('colour', 'blue'), why], [why, answers('none', 'red')]]) {
      expect((await server.answer(asked, { answers: wrong })).status).toBe(400);
    }
    const given = await server.answer(asked, { answers: [answers('colour', 'red'), why] });
    expect(given).toMatchObject({ status: 200, body: { accepted: true, approval: { status: 'answered' } } });
    await server.idle(asked);
    const { body } = await server.call('GET', `${W}/${world}/chats/${asked.chat}/messages`);
    expect(JSON.stringify(body)).toContain('it is warm');
  });
});

const answers = (questionId: string, optionId: string) => ({ questionId, optionIds: [optionId] });

it('the document tells both answers of an answer, and that it takes a key', async () => {
  const { body } = await server.call('GET', '/api/v1/openapi.json');
  const paths = body['paths'] as Record<string, Record<string, { responses: Record<string, unknown> }>>;
  const call = paths['/api/v1/worlds/{world}/approvals/{approval}/answer']?.['post'];
  expect(Object.keys(call?.responses ?? {})).toEqual(expect.arrayContaining(['200', '400', '403', '404', '409']));
  const conflict = JSON.stringify(call?.responses['409']);
  for (const part of ['AnsweredApproval', 'ErrorBody', 'idempotency_mismatch']) expect(conflict).toContain(part);
  expect(JSON.stringify(call)).toContain('Idempotency-Key');
});
