import { afterEach, describe, expect, test } from 'vitest';
import { OWNER } from '../core/index.ts';
import type { ModelPart, Tool } from '../core/ports.ts';
import { AgentSettings, type Approval } from '../core/protocol/entities.ts';
import { agentPrompt, canonicalArgs } from '../core/tools/create-agent.ts';
import { type Calls, calling } from './support/calling.ts';
import { openRoom, type Room } from './support/room.ts';

let room: Room;
afterEach(async () => {
  await room.close();
});

const count: Tool = {
  name: 'count',
  description: 'a tool that the maker may lack',
  parameters: { type: 'object' },
  effect: 'write',
  asks: 'by-permission',
  parse: (args) => ({ ok: true, args }),
  describe: async () => ({ ok: true, question: { title: 'Count?', message: '' } }),
  run: async () => ({ content: 'counted', isError: false }),
};
const one: Calls = [{ name: 'count', args: {} }];

async function pending(): Promise<Approval> {
  const { data } = await room.event('approval.requested');
  const [first] = await room.parley.listApprovals(OWNER, room.world, 'pending');
  if (!first) throw new Error(`nothing is pending, although ${data.approval.id} was requested`);
  return first;
}
const answer = (id: string, input: Parameters<Room['parley']['answerApproval']>[3]) =>
  room.parley.answerApproval(OWNER, room.world, id, input);
const last = async () => (await room.texts()).at(-1);

describe('create_agent', () => {
  const create = (args: Record<string, unknown>) => calling([{ name: 'create_agent', args }]);
  const result = async () => JSON.parse(((await last()) ?? '').replace('Maker: got ', '')) as Record<string, unknown>;

  test('asks in every permission mode, shows the whole prompt, and creates one agent that can be talked to', async () => {
    for (const toolPermission of ['read', 'ask', 'auto'] as const) {
      room = await openRoom({
        agents: ['Maker'],
        world: { toolPermission, mainAgent: 'maker', chatLLMProvider: 'test', chatLLMModel: 'm1' },
        answer: (request, signal) =>
          request.scene.agent.id === 'maker'
            ? (create({ name: 'Data  Wizard', role: 'cleaning tables', next_agent: '@Maker' })(
                request,
                signal,
              ) as AsyncIterable<ModelPart>)
            : 'new here',
      });
      await room.say('make one');
      const approval = await pending();
      expect(approval.kind).toBe('create_agent');
      expect(approval.message).toContain(
        'You are agent Data Wizard. Your role is cleaning tables.\n\nAlways respond in exactly this structure:\n@Maker\n{Your response}',
      );
      expect(await room.parley.listAgents(OWNER, room.world)).toHaveLength(1);
      await expect(answer(approval.id, { optionId: 'yes', remember: 'world' })).rejects.toMatchObject({
        code: 'invalid',
      });
      await answer(approval.id, { optionId: 'yes' });
      await room.event('turn.done');
      expect(await result()).toEqual({
        ok: true,
        status: 'created',
        created: true,
        agent: {
          id: 'data-wizard',
          name: 'Data Wizard',
          type: 'default',
          autoReply: true,
          provider: 'test',
          model: 'm1',
        },
        effective: {
          role: 'cleaning tables',
          nextAgent: 'Maker',
          systemPrompt: agentPrompt({ name: 'Data Wizard', role: 'cleaning tables', nextAgent: 'Maker' }),
        },
      });
      const made = await room.parley.getAgent(OWNER, room.world, 'data-wizard');
      expect(made).toMatchObject({
        source: 'tool',
        createdBy: 'maker',
        ceiling: expect.arrayContaining(['create_agent']),
      });
      await room.say('@Data Wizard hello');
      await room.event('turn.done', (event) => event.data.turn.agentId === 'data-wizard');
      if (toolPermission !== 'auto') await room.close();
    }
  });

  test.each([
    ['a missing name', {}, 'validation_error'],
    ['an empty name', { name: ' \n ' }, 'validation_error'],
    ['a name without letters', { name: '🤖' }, 'validation_error'],
    ['a reserved name', { name: 'Human' }, 'validation_error'],
    ['an unknown key', { name: 'X', rights: 'all' }, 'validation_error'],
    ['a wrong type', { name: 'X', autoReply: 'yes' }, 'validation_error'],
    ['a taken name', { name: 'MAKER' }, 'agent_exists'],
  ])('refuses %s before anybody is asked', async (_, args, code) => {
    room = await openRoom({ agents: ['Maker'], answer: create(args) });
    await room.say('make one');
    await room.idle();
    expect(await result()).toMatchObject({ ok: false, status: 'error', code, created: false });
    expect(await room.parley.listApprovals(OWNER, room.world)).toEqual([]);
  });

  test('a no creates nothing and gives the name back; a timeout and a stop too', async () => {
    room = await openRoom({ agents: ['Maker'], answer: create({ name: 'New' }) });
    await room.say('make one');
    await answer((await pending()).id, { optionId: 'no' });
    await room.event('turn.done');
    expect(await result()).toEqual({ ok: false, status: 'denied', created: false, reason: 'user_denied', name: 'New' });
    await room.say('make one');
    await room.idle();
    expect(await room.parley.listApprovals(OWNER, room.world, 'pending')).toHaveLength(1);
    expect(await room.parley.listAgents(OWNER, room.world)).toHaveLength(1);
  });

  test('two at once for one name: one asks, the other is told that it exists', async () => {
    room = await openRoom({
      agents: ['Maker', 'Other'],
      answer: create({ name: 'New' }),
    });
    await room.say('both of you');
    await room.event('turn.done');
    await room.idle();
    expect(await room.parley.listApprovals(OWNER, room.world)).toHaveLength(1);
    expect(await last()).toContain('agent_exists');
    await answer((await pending()).id, { optionId: 'yes' });
    await room.event('agent.created', (event) => event.data.agent.id === 'new');
    await room.idle();
    expect(await room.parley.listAgents(OWNER, room.world)).toHaveLength(3);
  });

  test('never gives more rights than its maker has', async () => {
    let maker = true;
    room = await openRoom({
      agents: [],
      parley: { tools: [count] },
      answer: (request, signal) =>
        (maker ? create({ name: 'Child' }) : calling(one))(request, signal) as AsyncIterable<ModelPart>,
    });
    await room.parley.createAgent(
      OWNER,
      room.world,
      AgentSettings.parse({ name: 'Maker', tools: { block: ['count'] } }),
    );
    await room.say('@Maker make one');
    await answer((await pending()).id, { optionId: 'yes' });
    await room.event('turn.done');
    maker = false;
    await room.parley.patchAgent(OWNER, room.world, 'child', { tools: { allow: ['count', 'create_agent'] } });
    await room.say('@Child count');
    await room.idle();
    expect(await last()).toContain('There is no tool called "count"');
  });

  test('aliases are read, the canonical key wins, and the input stays as it was', async () => {
    room = await openRoom({ agents: [], answer: () => '' });
    const input = Object.freeze({ name: 'X', 'auto-reply': false, nextAgent: 'a', 'next agent': 'b' });
    expect(canonicalArgs(input)).toEqual({ name: 'X', autoReply: false, nextAgent: 'a' });
    expect(canonicalArgs({ auto_reply: true, 'next-agent': 'c' })).toEqual({ autoReply: true, nextAgent: 'c' });
    expect(agentPrompt({ name: 'N', nextAgent: 'human' })).toBe(
      'You are agent N.\n\nAlways respond in exactly this structure:\n@human\n{Your response}',
    );
  });
});
