import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { AppError } from '../core/protocol/errors.ts';
import { createSecrets } from '../core/safety/redact.ts';
import type { Io } from './io.ts';
import type { Product } from './product.ts';
import { runCommandLine } from './program.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A command line over a server that answers from a table of `METHOD path`. */
async function command(args: string[], answers: Record<string, unknown> = {}, input = '') {
  const data = mkdtempSync(join(tmpdir(), 'parley-cli-'));
  folders.push(data);
  const stdin = new PassThrough();
  stdin.end(input);
  const io: Io = { stdin, stdout: new PassThrough(), stderr: new PassThrough() };
  const sent: { method: string; path: string; body: unknown }[] = [];
  let closed = 0;
  const product: Product = {
    version: '9.9.9',
    secrets: createSecrets(),
    openLocal: async () => ({
      url: 'this process',
      async request(path, init) {
        const method = init.method ?? 'GET';
        sent.push({ method, path, body: typeof init.body === 'string' ? JSON.parse(init.body) : undefined });
        const answer = answers[`${method} ${path}`];
        if (answer === undefined) {
          return Response.json(new AppError('not_found', `there is no ${path}`).toBody(), { status: 404 });
        }
        return answer === null ? new Response(null, { status: 204 }) : Response.json(answer);
      },
      close: async () => {
        closed += 1;
      },
    }),
    listen: async () => {
      throw new AppError('busy', 'the data directory is in use by another server (process 7)');
    },
  };
  const local = ['serve', 'run', 'chat', 'worlds', 'agents', 'chats', 'approvals', 'doctor'].includes(args[0] ?? '');
  const code = await runCommandLine(product, io, local ? [...args, '--data', data] : args);
  const read = (stream: Io['stdout']) => String((stream as PassThrough).read() ?? '');
  return { code, out: read(io.stdout), err: read(io.stderr), sent, closed };
}

test.each([
  ['an unknown command', ['nope']],
  ['an unknown option', ['worlds', 'list', '--nope']],
  ['a missing argument', ['agents', 'list']],
  ['an argument too many', ['worlds', 'show', 'a', 'b']],
  ['a time that is none', ['run', 'w', 'hi', '--timeout', 'soon']],
  ['no message at all', ['run', 'w']],
  ['an address that is none', ['worlds', 'list', '--server', 'nowhere']],
  ['a way to approve that is none', ['run', 'w', 'hi', '--approve', 'maybe']],
  ['a scope that is none', ['approvals', 'answer', 'a', 'yes', '--remember', 'always']],
  ['a setting that does not exist', ['worlds', 'create', 'x', '--set', 'colour=red']],
])('ends with 2 for %s and writes nothing to standard output', async (_what, args) => {
  const { code, out, err } = await command(args);
  expect(code).toBe(2);
  expect(out).toBe('');
  expect(err).not.toBe('');
});

test('ends with 1 and one line where a setting is bad', async () => {
  const { code, out, err } = await command(['serve', '--port', 'abc']);
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toBe('parley: --port must be a whole number from 0 to 65535, not "abc"\n');
});

test('ends with 1 and one line where the server cannot start', async () => {
  const { code, err } = await command(['serve']);
  expect(code).toBe(1);
  expect(err).toBe('parley: the data directory is in use by another server (process 7)\n');
});

test('ends with 1 and the server’s own words where something does not exist', async () => {
  const { code, err, closed } = await command(['worlds', 'show', 'mars']);
  expect(code).toBe(1);
  expect(err).toBe('parley: there is no /api/v1/worlds/mars\n');
  expect(closed).toBe(1);
});

test('prints version and help to standard output with 0', async () => {
  expect(await command(['--version'])).toMatchObject({ code: 0, out: '9.9.9\n', err: '' });
  const help = await command(['--help']);
  expect(help).toMatchObject({ code: 0, err: '' });
  for (const name of ['serve', 'run', 'chat', 'worlds', 'agents', 'chats', 'approvals', 'doctor'])
    expect(help.out).toContain(name);
});

test('creates with settings from options and prints the id alone', async () => {
  const answers = { 'POST /api/v1/worlds/w/agents': { id: 'ann', source: 'world' } };
  const args = [
    'agents',
    'create',
    'w',
    'Ann',
    '--model',
    'demo:echo',
    '--set',
    'autoReply=false',
    '--set',
    'displayName=A 1',
  ];
  const { code, out, err, sent } = await command(args, answers);
  expect({ code, out, err }).toEqual({ code: 0, out: 'ann\n', err: 'source: world\n' });
  const body = { name: 'Ann', model: 'demo:echo', autoReply: false, displayName: 'A 1' };
  expect(sent).toEqual([{ method: 'POST', path: '/api/v1/worlds/w/agents', body }]);
});

test('escapes ids in addresses', async () => {
  const { sent } = await command(['agents', 'show', 'a/../b', 'c?d']);
  expect(sent[0]?.path).toBe('/api/v1/worlds/a%2F..%2Fb/agents/c%3Fd');
});

test('prints the answer of the API with --json', async () => {
  const answer = { worlds: [{ id: 'demo', name: 'Demo', description: '' }] };
  const { out } = await command(['worlds', 'list', '--json'], { 'GET /api/v1/worlds': answer });
  expect(JSON.parse(out)).toEqual(answer);
});

test('shows a list as a table in which names cannot break the lines', async () => {
  const answer = { worlds: [{ id: 'demo', name: 'De\nmo\u001b[1m', description: 'x' }] };
  const { out } = await command(['worlds', 'list'], { 'GET /api/v1/worlds': answer });
  expect(out.split('\n')).toEqual([expect.stringContaining('NAME'), 'demo  De\\nmo\\x1b[1m  x', '']);
});

test('deletes without a terminal only with --yes', async () => {
  const world = { id: 'w', name: 'W', agents: [], chats: [] };
  const answers = { 'GET /api/v1/worlds/w': world, 'DELETE /api/v1/worlds/w': null };
  const refused = await command(['worlds', 'delete', 'w'], answers);
  expect(refused.code).toBe(2);
  expect(refused.sent.map(({ method }) => method)).toEqual(['GET']);
  const done = await command(['worlds', 'delete', 'w', '--yes'], answers);
  expect(done.code).toBe(0);
  expect(done.sent.at(-1)?.method).toBe('DELETE');
});

const asked = {
  id: 'a1',
  worldId: 'w',
  chatId: 'c',
  turnId: 't',
  agentId: 'ann',
  kind: 'ask_user',
  title: 'Ann has 2 questions',
  message: 'Ann asks',
  questions: [
    { id: 'size', header: 'Size', question: 'How big?', options: [{ id: 's', label: 'small' }] },
    { id: 'why', header: 'Why', question: 'Why?', options: [], freeText: true },
  ],
  options: [{ id: 's', label: 'small' }],
  defaultOptionId: null,
  status: 'pending',
  createdAt: '2026-01-01T00:00:00.000Z',
};
const inbox = { 'GET /api/v1/approvals?status=pending': { approvals: [asked] } };
const ANSWER = 'POST /api/v1/worlds/w/approvals/a1/answer';

test('lists and shows what waits', async () => {
  const listed = await command(['approvals', 'list'], inbox);
  expect(listed).toMatchObject({ code: 0, out: expect.stringMatching(/^APPROVAL .*\na1 .*Ann has 2 questions\n$/) });
  expect(JSON.parse((await command(['approvals', 'list', '--json'], inbox)).out)).toEqual({ approvals: [asked] });
  const shown = await command(['approvals', 'show', 'a1'], inbox);
  expect(shown.code).toBe(0);
  for (const part of ['How big?', '1) small', 'Why?', 'still waiting']) expect(shown.out).toContain(part);
});

test('answers several questions by name, an option by number or id and words where they are taken', async () => {
  const resolution = { optionId: 's', by: 'me', at: asked.createdAt, answers: [] };
  const answers = { ...inbox, [ANSWER]: { accepted: true, approval: { ...asked, status: 'answered', resolution } } };
  const given = ['--answer', 'size=1', '--answer', 'why=a=b'];
  const done = await command(['approvals', 'answer', 'a1', ...given], answers);
  expect(done).toMatchObject({ code: 0, out: '' });
  expect(done.sent.at(-1)?.body).toEqual({
    chatId: 'c',
    remember: 'once',
    answers: [
      { questionId: 'size', optionIds: ['s'] },
      { questionId: 'why', optionIds: [], text: 'a=b' },
    ],
  });
});

test.each([
  ['no answer', []],
  ['an option that it has not', ['maybe']],
  ['a question that it has not', ['--answer', 'colour=red']],
  ['an option that the question has not', ['--answer', 'size=huge']],
  ['an answer and a refusal', ['s', '--skip']],
])('sends nothing and ends with 2 for %s', async (_what, args) => {
  const refused = await command(['approvals', 'answer', 'a1', ...args], inbox);
  expect(refused).toMatchObject({ code: 2, out: '' });
  expect(refused.sent.map(({ method }) => method)).toEqual(['GET']);
});

test('finds an approval that was decided before in its world, and says that there is none', async () => {
  const answers = {
    'GET /api/v1/approvals?status=pending': { approvals: [] },
    'GET /api/v1/worlds': { worlds: [{ id: 'v' }, { id: 'w' }] },
    'GET /api/v1/worlds/w/approvals/a1': { ...asked, status: 'cancelled' },
  };
  const found = await command(['approvals', 'show', 'a1'], answers);
  expect(found.out).toContain('cancelled: Ann has 2 questions');
  const lost = await command(['approvals', 'show', 'a2'], answers);
  expect(lost).toMatchObject({ code: 1, out: '', err: expect.stringContaining('there is no approval "a2"') });
});
