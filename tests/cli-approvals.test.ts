import { beforeEach, expect, test } from 'vitest';
import { loadConfig } from '../core/config.ts';
import { OWNER, openParley } from '../core/index.ts';
import type { Parley } from '../core/parley.ts';
import { WorldSettings } from '../core/protocol/entities.ts';
import { CreateAgent } from '../core/protocol/requests.ts';
import { command, start, startServer, temporaryFolder, writeScript } from './support/command.ts';

let data: string;

const HELPER = { tool: 'create_agent', args: { name: 'Helper', role: 'testing' } };
/** Makes a helper where the message says so; says what came of it. */
const MAKER = [
  { when: { toolResult: 'user_denied' }, say: 'it was refused' },
  { when: { toolResult: '"status":"created"' }, say: 'it is made' },
  { when: { contains: 'make' }, call: HELPER },
  { say: 'heard: {{message}}' },
];

const silentLog = { debug() {}, info() {}, warn() {}, error() {} };

/** Opens the data directory in this process, while no other has it. */
async function inside<T>(work: (parley: Parley) => Promise<T>): Promise<T> {
  const parley = await openParley({ config: loadConfig({ data }, {}), log: silentLog, version: 'test' });
  try {
    return await work(parley);
  } finally {
    await parley.close();
  }
}

/** A world `room` with scripted agents. */
async function makeRoom(agents: Record<string, readonly Record<string, unknown>[]>) {
  await inside(async (parley) => {
    await parley.createWorld(OWNER, WorldSettings.parse({ name: 'Room' }));
    for (const [name, rules] of Object.entries(agents)) {
      writeScript(data, name, rules);
      await parley.createAgent(OWNER, 'room', CreateAgent.parse({ name, provider: 'script', model: name }));
    }
  });
}

const agents = () => inside(async (parley) => (await parley.listAgents(OWNER, 'room')).map(({ id }) => String(id)));
const waiting = () => inside((parley) => parley.listApprovals(OWNER, 'room', 'pending'));

/** What waits at the server that runs on the data directory. */
async function waitingAtServer(): Promise<{ id: string; title: string; chatId: string }[]> {
  const listed = await command(data, ['approvals', 'list', '--json']);
  return (JSON.parse(listed.out) as { approvals: { id: string; title: string; chatId: string }[] }).approvals;
}

beforeEach(() => {
  data = temporaryFolder();
});

test('run without a terminal denies what is asked, creates nothing and ends with 3', async () => {
  await makeRoom({ maker: MAKER });
  const said = await command(data, ['run', 'room', 'make one']);
  expect(said.code).toBe(3);
  expect(said.out).toContain('it was refused');
  expect(said.err).toContain('Create the agent Helper?');
  expect(said.err).toContain('You are agent Helper. Your role is testing.');
  expect(said.err).toContain('denied by');
  expect(await agents()).toEqual(['maker']);
  expect(await waiting()).toEqual([]);
});

test('run --approve yes gives it, the agent is there with its source, and the end is 0', async () => {
  await makeRoom({ maker: MAKER });
  const said = await command(data, ['run', 'room', 'make one', '--approve', 'yes', '--json']);
  expect(said.code).toBe(0);
  expect(said.err).toContain('Create the agent Helper?');
  expect(said.err).toContain('allowed by');
  expect(JSON.parse(said.out)).toMatchObject({
    status: 'done',
    approvals: [{ kind: 'create_agent', status: 'answered', resolution: { optionId: 'yes' } }],
    messages: [{ content: 'it is made' }],
  });
  const shown = await command(data, ['agents', 'show', 'room', 'helper']);
  expect(shown.out).toMatch(/^source: tool$/m);
  expect(shown.out).toMatch(/^createdBy: maker$/m);
});

test('run --approve no denies and ends with 3, run without a question with 0', async () => {
  await makeRoom({ maker: MAKER });
  const said = await command(data, ['run', 'room', 'make one', '--approve', 'no', '--json']);
  expect(said.code).toBe(3);
  expect(JSON.parse(said.out)).toMatchObject({ status: 'approval', approvals: [{ status: 'denied' }] });
  expect(await agents()).toEqual(['maker']);
  expect(await command(data, ['run', 'room', 'hello', '--approve', 'no'])).toMatchObject({ code: 0 });
  const nobody = await command(data, ['run', 'room', 'make one', '--approve', 'ask']);
  expect(nobody).toMatchObject({ code: 2, out: '', err: expect.stringContaining('needs a terminal, or a server') });
});

test('run --approve yes decides nothing that an earlier message led to', async () => {
  await makeRoom({ maker: MAKER });
  const chat = (await command(data, ['chats', 'create', 'room'])).out.trim();
  expect(await command(data, ['chat', 'room', '--chat', chat], 'make one\n')).toMatchObject({ code: 3 });
  const said = await command(data, ['run', 'room', '--chat', chat, 'hello', '--approve', 'yes']);
  expect(said.code).toBe(3);
  expect(said.err).toContain('an approval still waits');
  expect(await waiting()).toHaveLength(1);
  expect(await agents()).toEqual(['maker']);
});

test('run --approve ask at a server waits for somebody else’s decision', async () => {
  await makeRoom({ maker: MAKER });
  await startServer(data);
  const running = start(data, ['run', 'room', 'make one', '--approve', 'ask']);
  running.child.stdin.end();
  await running.untilErr(/waits: parley approvals answer/);
  const [approval] = await waitingAtServer();
  const answered = await command(data, ['approvals', 'answer', approval?.id ?? '', 'yes']);
  expect(answered).toMatchObject({ code: 0, out: '', err: expect.stringContaining('allowed by') });
  expect(await running.ended).toMatchObject({ code: 0, out: expect.stringContaining('it is made') });
});

test('run that is interrupted while it asks cancels the approval and ends with 130', async () => {
  await makeRoom({ maker: MAKER });
  await startServer(data);
  const running = start(data, ['run', 'room', 'make one', '--approve', 'ask']);
  running.child.stdin.end();
  await running.untilErr(/waits: parley approvals answer/);
  running.child.kill('SIGINT');
  expect((await running.ended).code).toBe(130);
  expect(await waitingAtServer()).toEqual([]);
});

test('chat by pipe: y approves where something is asked', async () => {
  await makeRoom({ maker: MAKER });
  const talked = await command(data, ['chat', 'room'], 'make one\ny\nthanks\n');
  expect(talked.code).toBe(0);
  expect(talked.err).toContain('│ maker proposes a new agent @helper.');
  expect(talked.err).toContain('  1) Allow\n  2) Deny');
  expect(talked.err).toContain('allowed by');
  expect(talked.out).toContain('it is made');
  expect(talked.out).toContain('heard: thanks');
  expect(await agents()).toContain('helper');
});

test('chat by pipe: y, yes and 1 are messages where nothing is asked', async () => {
  await makeRoom({ maker: MAKER });
  const talked = await command(data, ['chat', 'room'], 'y\nyes\n1\nn no\n');
  expect(talked.code).toBe(0);
  expect(talked.out).toBe('maker: heard: y\nmaker: heard: yes\nmaker: heard: 1\nmaker: heard: n no\n');
});

test('chat by pipe: other words decide nothing, and what waits at the end still waits', async () => {
  await makeRoom({ maker: MAKER });
  const talked = await command(data, ['chat', 'room'], 'make one\nyes\napproved, go ahead\n/approvals\n');
  expect(talked.code).toBe(3);
  expect(talked.err).toContain('sent as a message; the approval still waits');
  expect(talked.err).toMatch(/^#1 maker: Create the agent Helper\?/m);
  expect(await waiting()).toHaveLength(1);
  expect(await agents()).toEqual(['maker']);
});

test('chat by pipe: n with a reason denies, and the agent is told why', async () => {
  await makeRoom({ maker: [{ when: { toolResult: 'too soon' }, say: 'I see, too soon' }, ...MAKER] });
  const talked = await command(data, ['chat', 'room'], 'make one\nn too soon\n');
  expect(talked.code).toBe(0);
  expect(talked.out).toBe('maker: I see, too soon\n');
  expect(await agents()).toEqual(['maker']);
});

test('chat by pipe: /answer decides by number, in any order', async () => {
  const other = [
    { when: { toolResult: 'denied' }, say: 'no second one' },
    { when: { contains: 'make' }, call: { tool: 'create_agent', args: { name: 'Second' } } },
  ];
  await makeRoom({ maker: MAKER, other });
  const talked = await command(
    data,
    ['chat', 'room'],
    '@maker make one\n@other make one\n/answer 2 no\n/answer 1 1\n/answer 1 yes\n',
  );
  expect(talked.code).toBe(0);
  expect(talked.out.trim().split('\n').sort()).toEqual(['maker: it is made', 'other: no second one']);
  expect(talked.err).toContain('no approval #1 waits');
  expect((await agents()).sort()).toEqual(['helper', 'maker', 'other']);
});

test('chat by pipe: questions come one after the other, with own words where they are welcome', async () => {
  const questions = [
    { id: 'size', question: 'How big?', options: ['small', 'big'] },
    { id: 'why', question: 'Why?' },
  ];
  const asker = [
    { when: { toolResult: 'why not' }, say: 'noted' },
    { when: { contains: 'ask' }, call: { tool: 'ask_user', args: { questions } } },
  ];
  await makeRoom({ asker });
  const talked = await command(data, ['chat', 'room'], 'ask me\n2\nwhy not\n');
  expect(talked).toMatchObject({ code: 0, out: 'asker: noted\n' });
  expect(talked.err).toContain('(1 of 2)\n│ How big?\n  1) small\n  2) big');
  expect(talked.err).toContain('(2 of 2)\n│ Why?');
  expect(talked.err).toContain('answered big; why not by');
});

test('an approval outlives kill -9 of the server and is answered after the restart', async () => {
  await makeRoom({ maker: MAKER });
  const first = await startServer(data);
  const running = start(data, ['run', 'room', 'make one', '--approve', 'ask']);
  running.child.stdin.end();
  await running.untilErr(/waits: parley approvals answer/);
  first.child.kill('SIGKILL');
  await first.ended;
  running.child.kill('SIGKILL');
  await running.ended;
  await startServer(data);
  const [approval] = await waitingAtServer();
  const chatId = approval?.chatId ?? '';
  expect(approval?.title).toBe('Create the agent Helper?');
  const id = approval?.id ?? '';
  const shown = await command(data, ['approvals', 'show', id]);
  expect(shown.out).toContain('You are agent Helper. Your role is testing.');
  expect(await command(data, ['approvals', 'answer', id, 'yes'])).toMatchObject({ code: 0 });
  const late = await command(data, ['approvals', 'answer', id, 'no']);
  expect(late).toMatchObject({ code: 1, out: '', err: expect.stringContaining('allowed by') });
  const said = await command(data, ['run', 'room', '--chat', chatId, '--agent', 'maker', 'hello']);
  expect(said).toMatchObject({ code: 0, out: expect.stringContaining('heard: ') });
  expect((await command(data, ['agents', 'list', 'room', '--json'])).out).toContain('"createdBy":"maker"');
});

test('approvals answer on a data directory goes on until the agents are done', async () => {
  await makeRoom({ maker: MAKER });
  expect(await command(data, ['chat', 'room'], 'make one\n')).toMatchObject({ code: 3 });
  const [approval] = await waiting();
  const answered = await command(data, ['approvals', 'answer', approval?.id ?? '', 'yes']);
  expect(answered).toMatchObject({ code: 0, out: 'maker: it is made\n' });
  expect(await agents()).toContain('helper');
  const none = await command(data, ['approvals', 'answer', 'nothing', 'yes']);
  expect(none).toMatchObject({ code: 1, out: '', err: expect.stringContaining('there is no approval "nothing"') });
});
