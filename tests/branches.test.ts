import { afterEach, describe, expect, test } from 'vitest';
import { type Actor, OWNER } from '../core/index.ts';
import type { ModelPart, ModelRequest } from '../core/ports.ts';
import type { Message } from '../core/protocol/entities.ts';
import { gate, openRoom, type Room } from './support/room.ts';

let room: Room;
afterEach(async () => {
  await room.close();
});

const MIA: Actor = { tokenId: 'mia', role: 'member', name: 'Mia' };
const VIC: Actor = { tokenId: 'vic', role: 'viewer', name: 'Vic' };
const key = (name: string) => ({ scope: 'test', key: name, hash: name });

/** The words h1, h2 … that other speakers said, as the model sees them. */
const heard = (request: ModelRequest): string[] =>
  request.messages.flatMap((message) =>
    message.role === 'user' ? (message.content.replace(/<your-turn.*/s, '').match(/\bh\d+\b/g) ?? []) : [],
  );
const hearing = (request: ModelRequest) => `heard ${heard(request).join(' ')}`;
async function* hanging(text: string, signal: AbortSignal): AsyncIterable<ModelPart> {
  yield { type: 'text', text };
  await new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

const edit = (message: Message | string, content: string, actor = OWNER) =>
  room.parley.editMessage(actor, room.world, room.chat, typeof message === 'string' ? message : message.id, content);
const regenerate = (message: Message) => room.parley.regenerate(OWNER, room.world, room.chat, message.id);
const branches = () => room.parley.branches(OWNER, room.world, room.chat);
const turns = () => room.parley.turns(OWNER, room.world, room.chat);
const chat = () => room.parley.getChat(OWNER, room.world, room.chat);
const pathTo = async (head: string) =>
  (await room.parley.messages(OWNER, room.world, room.chat, { limit: 500, head })).messages.map(
    ({ content }) => content,
  );
async function nth(index: number): Promise<Message> {
  const message = (await room.messages())[index];
  if (!message) throw new Error(`there is no message ${index}`);
  return message;
}
async function converse(...texts: string[]): Promise<void> {
  for (const text of texts) {
    await room.say(text);
    await room.idle();
  }
}

describe('editing', () => {
  test('goes on from the edited message, shows the model the new branch alone, and keeps the old one readable', async () => {
    room = await openRoom({ agents: ['A'], answer: hearing });
    await converse('h1', 'h2', 'h3');
    const before = await room.messages();
    const second = await nth(2);
    const posted = await edit(second, 'h4');
    await room.idle();
    expect(await room.texts()).toEqual(['Owner: h1', 'A: heard h1', 'Owner: h4', 'A: heard h1 h4']);
    expect(posted.message).toMatchObject({ seq: 7, parentId: before[1]?.id, sender: second.sender });
    expect(posted.turns).toHaveLength(1);
    const [first, other, ...none] = await branches();
    expect(none).toEqual([]);
    expect(first).toMatchObject({ forkMessageId: null, headId: before[5]?.id });
    expect(other).toMatchObject({ forkMessageId: before[1]?.id, headId: (await chat()).head });
    expect(await pathTo(before[5]?.id ?? '')).toEqual(before.map(({ content }) => content));
    const updates = room.stored().filter(({ type }) => type === 'chat.updated' || type === 'message.created');
    expect(updates.slice(-3).map(({ type }) => type)).toEqual(['chat.updated', 'message.created', 'message.created']);
  });

  test('the first message too', async () => {
    room = await openRoom({ agents: ['A'], answer: hearing });
    await converse('h1', 'h2');
    await edit(await nth(0), 'h3');
    await room.idle();
    expect(await room.texts()).toEqual(['Owner: h3', 'A: heard h3']);
    await edit(await nth(0), 'h4');
    await room.idle();
    expect(await room.texts()).toEqual(['Owner: h4', 'A: heard h4']);
    expect((await branches()).map(({ forkMessageId }) => forkMessageId)).toEqual([null, null, null]);
  });

  test('in the middle of an answer stops the turn first, and its late result is refused', async () => {
    const late = gate();
    let calls = 0;
    room = await openRoom({
      agents: ['A', 'B'],
      async *answer(request, signal) {
        if (heard(request).includes('h2')) {
          yield { type: 'text', text: hearing(request) };
          yield { type: 'finish', stop: 'end' };
        } else if (++calls === 1) yield* hanging('half', signal);
        else {
          await late.opened;
          yield { type: 'text', text: 'too late' };
          yield { type: 'finish', stop: 'end' };
        }
      },
      parley: { joinMs: 0 },
    });
    await room.say('h1');
    await room.event('message.delta');
    const edited = edit(await nth(0), 'h2');
    await room.event('turn.stopped');
    late.open();
    await edited;
    await room.idle();
    expect((await room.texts()).sort()).toEqual(['A: heard h2', 'B: heard h2', 'Owner: h2']);
    const old = (await turns()).filter(({ trigger }) => trigger.seq === 1).map(({ state }) => state);
    expect(old).toEqual(['stopped', 'stopped']);
    const events = room.stored();
    const said = events.findIndex((event) => event.type === 'message.created' && event.data.message.content === 'h2');
    expect(events.slice(said).some((event) => event.type === 'turn.stopped')).toBe(false);
    expect(JSON.stringify(events)).not.toContain('too late');
    const [first] = await branches();
    expect(await pathTo(first?.headId ?? '')).toEqual(['h1', 'half']);
  });

  test('drops queued turns and cancels nothing else: a repeated call with its key stops no new turn', async () => {
    room = await openRoom({ agents: ['A'], answer: (_, signal) => hanging('x', signal), parley: { joinMs: 0 } });
    await room.say('h1');
    await room.say('h2');
    const { message } = await room.say('h3');
    const again = () => room.parley.editMessage(OWNER, room.world, room.chat, message.id, 'h4', key('one'));
    const first = await again();
    expect(await again()).toEqual(first);
    const states = (await turns()).map(({ state, trigger }) => [trigger.seq, state]);
    expect(states.filter(([, state]) => state !== 'stopped')).toHaveLength(1);
    expect(states).toContainEqual([first.message.seq, expect.stringMatching('queued|running')]);
    await expect(
      room.parley.editMessage(OWNER, room.world, room.chat, message.id, 'h5', { ...key('one'), hash: 'other' }),
    ).rejects.toMatchObject({ code: 'idempotency_mismatch' });
  });

  test('a refused edit stops nothing', async () => {
    room = await openRoom({ agents: ['A'], answer: (_, signal) => hanging('x', signal), parley: { joinMs: 0 } });
    const { message } = await room.say('h1');
    await room.event('turn.started');
    await expect(edit(message, '  ')).rejects.toMatchObject({ code: 'empty_message' });
    await expect(edit('m_none', 'h2')).rejects.toMatchObject({ code: 'not_found' });
    await expect(edit(message, 'h2', MIA)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(edit(message, 'h2', VIC)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(edit(message, 'x'.repeat(262_145))).rejects.toMatchObject({ code: 'too_large' });
    expect((await turns()).map(({ state }) => state)).toEqual(['running']);
    expect(await branches()).toHaveLength(1);
  });

  test('is for what people said; members edit their own, owners everybody’s, the sender stays', async () => {
    room = await openRoom({ agents: ['A'], answer: hearing });
    const { message } = await room.parley.post(MIA, room.world, room.chat, 'h1');
    await room.idle();
    await expect(edit(await nth(1), 'forged')).rejects.toMatchObject({ code: 'conflict' });
    const own = await edit(message, 'h2', MIA);
    expect(own.message.sender).toEqual({ kind: 'human', id: 'mia', name: 'Mia' });
    expect((await edit(own.message, 'h3')).message.sender).toEqual(own.message.sender);
  });

  test('starts the limits’ count anew and drops what they held back on the old branch', async () => {
    room = await openRoom({
      agents: ['A', 'B'],
      world: { turnLimit: 2 },
      answer: ({ scene }) => (scene.agent.id === 'a' ? '@B go' : '@A go'),
    });
    await converse('@A h1');
    expect(room.stored().filter(({ type }) => type === 'limit.reached')).toHaveLength(1);
    await edit(await nth(0), '@A h2');
    await room.idle();
    expect((await turns()).filter(({ state }) => state === 'done')).toHaveLength(8);
    expect((await room.messages()).at(-1)?.notice?.kind).toBe('limit');
    const [first] = await branches();
    await room.parley.patchChat(OWNER, room.world, room.chat, { head: first?.headId ?? '' });
    await expect(room.parley.continueChat(OWNER, room.world, room.chat)).rejects.toMatchObject({
      code: 'nothing_to_continue',
    });
  });
});

describe('answering again', () => {
  test('an agent’s message: the same agent, the same trigger, the next number', async () => {
    let n = 0;
    room = await openRoom({ agents: ['A', 'B'], answer: ({ scene }) => `${scene.agent.name} ${++n}` });
    await converse('@A h1', '@B h2');
    const reply = await nth(3);
    const answer = await regenerate(reply);
    expect(answer.turns).toMatchObject([{ agentId: 'b', trigger: { seq: 3, reason: 'address' } }]);
    await room.idle();
    expect(await room.texts()).toEqual(['Owner: @A h1', 'A: A 1', 'Owner: @B h2', 'B: B 3']);
    expect(await nth(3)).toMatchObject({ seq: 5, parentId: reply.parentId, replyTo: reply.replyTo });
    await regenerate(await nth(1));
    await room.idle();
    expect(await room.texts()).toEqual(['Owner: @A h1', 'A: A 4']);
    expect(await branches()).toHaveLength(3);
  });

  test('a person’s message: all agents that it woke, after it', async () => {
    let n = 0;
    room = await openRoom({ agents: ['A', 'B', 'C'], answer: ({ scene }) => `${scene.agent.name} ${++n}` });
    await converse('@A, @B h1', '@C h2');
    const { turns: again } = await regenerate(await nth(0));
    expect(again.map(({ agentId }) => agentId).sort()).toEqual(['a', 'b']);
    await room.idle();
    expect((await room.texts()).toSorted()).toEqual(['A: A 4', 'B: B 5', 'Owner: @A, @B h1']);
    await room.parley.removeAgent(OWNER, room.world, 'a');
    const { turns: left } = await regenerate(await nth(0));
    expect(left.map(({ agentId }) => agentId)).toEqual(['b']);
  });

  test('is refused where there is nobody to answer, and for notices', async () => {
    room = await openRoom({ agents: ['A'], answer: () => 'x' });
    await converse('h1', '@human h2');
    await expect(regenerate(await nth(2))).rejects.toMatchObject({ code: 'conflict' });
    await room.parley.patchAgent(OWNER, room.world, 'a', { status: 'inactive' });
    await expect(regenerate(await nth(1))).rejects.toMatchObject({ code: 'conflict' });
    await expect(regenerate(await nth(0))).rejects.toMatchObject({ code: 'conflict' });
    expect(await branches()).toHaveLength(1);
  });

  test('a stopped or failed turn is tried again once, for the same trigger, on its branch', async () => {
    let fail = true;
    room = await openRoom({
      agents: ['A'],
      async *answer() {
        if (fail) throw new Error('broken');
        yield { type: 'text', text: 'well' };
        yield { type: 'finish', stop: 'end' };
      },
    });
    await converse('h1');
    const [failed] = await turns();
    if (!failed) throw new Error('no turn');
    const retry = (turn: string, name?: string) =>
      room.parley.retryTurn(OWNER, room.world, room.chat, turn, name === undefined ? undefined : key(name));
    fail = false;
    const again = await retry(failed.id, 'r');
    await room.idle();
    expect(await retry(failed.id, 'r')).toEqual(again);
    expect(again).toMatchObject({ agentId: 'a', trigger: failed.trigger });
    expect((await room.messages()).at(-1)).toMatchObject({ content: 'well', turnId: again.id });
    await expect(retry(failed.id)).rejects.toMatchObject({ code: 'conflict' });
    await expect(retry(again.id)).rejects.toMatchObject({ code: 'conflict' });
    await expect(retry('t_none')).rejects.toMatchObject({ code: 'not_found' });
    fail = true;
    await converse('h2');
    const other = (await turns())[0];
    await edit(other?.trigger.messageId ?? '', 'h3');
    await room.idle();
    await expect(retry(other?.id ?? '')).rejects.toMatchObject({ code: 'conflict' });
  });
});

describe('choosing a branch', () => {
  test('is kept over a restart, followed by reads and search, and told in chat.updated', async () => {
    room = await openRoom({ agents: [], answer: () => '' });
    await converse('alpha one', 'beta two');
    await edit(await nth(1), 'gamma three');
    const search = async (word: string) =>
      (await room.parley.search(OWNER, room.world, word, 10)).map(({ content }) => content);
    expect(await Promise.all(['alpha', 'beta', 'gamma'].map(search))).toEqual([['alpha one'], [], ['gamma three']]);
    const [first] = await branches();
    const head = first?.headId ?? '';
    const switched = await room.parley.patchChat(OWNER, room.world, room.chat, { head, title: 'Two ways' });
    expect(switched).toMatchObject({ head, title: 'Two ways' });
    const told = room.stored().filter((event) => event.type === 'chat.updated');
    expect(told.at(-1)?.data.chat.head).toBe(head);
    await room.reopen();
    expect(await room.texts()).toEqual(['Owner: alpha one', 'Owner: beta two']);
    expect(await Promise.all(['alpha', 'beta', 'gamma'].map(search))).toEqual([['alpha one'], ['beta two'], []]);
    await room.say('delta');
    expect((await chat()).lastSeq).toBe(4);
    expect((await branches()).map(({ headId }) => headId)).toContain((await chat()).head);
  });

  test('refuses what the chat does not have, and stops what runs for another branch', async () => {
    room = await openRoom({ agents: ['A'], answer: (_, signal) => hanging('x', signal), parley: { joinMs: 0 } });
    const { message } = await room.say('h1');
    const other = await room.parley.createChat(OWNER, room.world, {});
    const foreign = await room.parley.post(OWNER, room.world, other.id, 'elsewhere');
    const choose = (head: string, actor = OWNER) => room.parley.patchChat(actor, room.world, room.chat, { head });
    await expect(choose(foreign.message.id)).rejects.toMatchObject({ code: 'not_found' });
    await expect(choose(message.id, VIC)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(
      room.parley.messages(OWNER, room.world, room.chat, { limit: 1, head: foreign.message.id }),
    ).rejects.toMatchObject({ code: 'not_found' });
    await edit(message, 'h2');
    const switches = () => room.stored().filter(({ type }) => type === 'chat.updated').length;
    const before = switches();
    await choose((await chat()).head ?? '');
    expect(switches()).toBe(before);
    await choose(message.id);
    expect((await turns()).filter(({ trigger, state }) => trigger.seq > 1 && state !== 'stopped')).toEqual([]);
    expect((await room.texts())[0]).toBe('Owner: h1');
  });
});

describe('deleting', () => {
  test('blanks the row, the stored events and the index, keeps seq, and the model never sees it again', async () => {
    room = await openRoom({ agents: ['A'], answer: hearing });
    await converse('h1 secret', 'h2');
    expect(await room.parley.search(OWNER, room.world, 'secret', 10)).toHaveLength(1);
    const target = await nth(0);
    await room.parley.deleteMessage(OWNER, room.world, room.chat, target.id);
    await room.parley.deleteMessage(OWNER, room.world, room.chat, target.id);
    expect(room.stored().filter(({ type }) => type === 'message.deleted')).toHaveLength(1);
    expect(await nth(0)).toMatchObject({ id: target.id, seq: 1, content: '', deleted: true });
    const log = await room.parley.events.read(room.world, 0, 500);
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index + 1));
    const stored = log.find((event) => event.type === 'message.created' && event.data.message.id === target.id);
    expect(stored).toMatchObject({ data: { message: { content: '', sender: target.sender } } });
    expect(await room.parley.search(OWNER, room.world, 'secret', 10)).toEqual([]);
    await converse('h3');
    expect((await room.messages()).at(-1)?.content).toBe('heard h2 h3');
  });

  test('leaves running turns alone, and turns that start beside them do not see it', async () => {
    const open = gate();
    room = await openRoom({
      agents: ['A', 'B'],
      async *answer(request) {
        if (request.scene.agent.id === 'a') await open.opened;
        yield { type: 'text', text: hearing(request) };
        yield { type: 'finish', stop: 'end' };
      },
    });
    const { message } = await room.say('@A h1');
    await room.event('turn.started');
    await room.parley.deleteMessage(OWNER, room.world, room.chat, message.id);
    await room.say('@B h2');
    await room.event('turn.done');
    open.open();
    await room.idle();
    expect((await room.texts()).slice(2)).toEqual(['B: heard h2', 'A: heard h1']);
  });

  test('members delete their own messages alone', async () => {
    room = await openRoom({ agents: [], answer: () => '' });
    const mine = await room.parley.post(MIA, room.world, room.chat, 'mine');
    const hers = await room.say('hers');
    const remove = (id: string, actor: Actor) => room.parley.deleteMessage(actor, room.world, room.chat, id);
    await expect(remove(hers.message.id, MIA)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(remove(mine.message.id, VIC)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(remove('m_none', OWNER)).rejects.toMatchObject({ code: 'not_found' });
    await remove(mine.message.id, MIA);
    await remove(hers.message.id, OWNER);
    expect(await room.texts()).toEqual(['Mia: ', 'Owner: ']);
  });
});

describe('forking', () => {
  test('copies the path up to a message into a new chat that goes its own way, without usage', async () => {
    room = await openRoom({ agents: ['A'], answer: hearing });
    await converse('h1', 'h2');
    const usage = await room.parley.usage(OWNER, room.world);
    const at = await nth(1);
    const fork = () => room.parley.forkChat(OWNER, room.world, room.chat, at.id, key('f'));
    const copy = await fork();
    expect(await fork()).toEqual(copy);
    expect(copy).toMatchObject({ title: 'Fork of h1', lastSeq: 2, parentChatId: null });
    expect(await room.parley.usage(OWNER, room.world)).toEqual(usage);
    await room.parley.post(OWNER, room.world, copy.id, 'h3');
    await room.parley.whenIdle(OWNER, room.world, copy.id, 20_000);
    const { messages } = await room.parley.messages(OWNER, room.world, copy.id, { limit: 500 });
    expect(messages.map(({ content }) => content)).toEqual(['h1', 'heard h1', 'h3', 'heard h1 h3']);
    expect(messages.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
    expect(messages.map(({ parentId }) => parentId)).toEqual([null, ...messages.slice(0, 3).map(({ id }) => id)]);
    expect(messages[1]).toMatchObject({ replyTo: messages[0]?.id });
    expect(messages[1]?.usage).toBeUndefined();
    expect(await room.texts()).toHaveLength(4);
    const again = await room.parley.regenerate(OWNER, room.world, copy.id, messages[1]?.id ?? '');
    expect(again.turns).toMatchObject([{ agentId: 'a', trigger: { seq: 1, reason: 'broadcast' } }]);
    await expect(room.parley.forkChat(OWNER, room.world, copy.id, at.id)).rejects.toMatchObject({ code: 'not_found' });
  });
});
