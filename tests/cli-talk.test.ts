import { readFileSync } from 'node:fs';
import { beforeEach, expect, test } from 'vitest';
import { loadConfig } from '../core/config.ts';
import { OWNER, openParley } from '../core/index.ts';
import { WorldSettings } from '../core/protocol/entities.ts';
import { CreateAgent } from '../core/protocol/requests.ts';
import { command, start, startServer, temporaryFolder, writeScript } from './support/command.ts';

let data: string;

/** A world `room` with scripted agents. */
async function makeRoom(agents: Record<string, readonly Record<string, unknown>[]>, settings = {}) {
  const parley = await openParley({ config: loadConfig({ data }, {}), log: silentLog, version: 'test' });
  try {
    await parley.createWorld(OWNER, WorldSettings.parse({ name: 'Room', ...settings }));
    for (const [name, rules] of Object.entries(agents)) {
      writeScript(data, name, rules);
      await parley.createAgent(OWNER, 'room', CreateAgent.parse({ name, provider: 'script', model: name }));
    }
  } finally {
    await parley.close();
  }
}
const silentLog = { debug() {}, info() {}, warn() {}, error() {} };

beforeEach(() => {
  data = temporaryFolder();
});

test('run prints answers with their authors on standard output and receipts on standard error, without a server', async () => {
  await makeRoom({
    ann: [{ when: { turn: 1 }, say: '@bob, you got: {{message}}\nOver to you.' }],
    bob: [{ when: { from: 'ann' }, say: 'thanks' }],
  });
  const said = await command(data, ['run', 'room', '@ann good morning']);
  expect(said.code).toBe(0);
  expect(said.out).toBe('ann: @bob, you got: @ann good morning\nOver to you.\nbob: thanks\n');
  expect(said.err).toContain('→ ann (addressed)');
  expect(said.err).toContain('→ bob (addressed)');
});

test('worlds, agents and chats are made, listed, shown and deleted from the command line', async () => {
  const world = await command(data, ['worlds', 'create', 'My Room', '--set', 'turnLimit=3']);
  expect(world).toMatchObject({ code: 0, out: 'my-room\n', err: '' });
  writeScript(data, 'hello', [{ say: 'hello' }]);
  const args = ['--provider', 'script', '--model', 'hello', '--set', 'autoReply=false'];
  expect(await command(data, ['agents', 'create', 'my-room', 'Ann', ...args])).toMatchObject({ code: 0, out: 'ann\n' });
  expect(await command(data, ['agents', 'create', 'my-room', 'ann', ...args])).toMatchObject({ code: 1, out: '' });
  const shown = await command(data, ['worlds', 'show', 'my-room', '--json']);
  expect(JSON.parse(shown.out)).toMatchObject({ turnLimit: 3, agents: [{ id: 'ann', autoReply: false }], chats: [] });
  expect(await command(data, ['worlds', 'delete', 'my-room', '--yes'])).toMatchObject({ code: 0, out: '' });
  expect((await command(data, ['worlds', 'list'])).out).not.toContain('my-room');
});

test('run reads the message from standard input and prints one JSON object', async () => {
  await makeRoom({ ann: [{ say: 'got {{message}}' }] });
  const said = await command(data, ['run', 'room', '--json'], 'two\nlines\n');
  expect(said.code).toBe(0);
  expect(JSON.parse(said.out)).toMatchObject({
    status: 'done',
    world: 'room',
    message: { content: 'two\nlines\n' },
    messages: [{ sender: { kind: 'agent', id: 'ann' }, content: expect.stringContaining('two\nlines') }],
    turns: [{ agentId: 'ann', state: 'done' }],
  });
});

test('run --agent wakes that agent alone, whoever else the text names', async () => {
  await makeRoom({ ann: [{ say: 'I am Ann' }], bob: [{ say: 'I am Bob' }] });
  const said = await command(data, ['run', 'room', '--agent', 'bob', 'what does @ann think?']);
  expect(said).toMatchObject({ code: 0, out: 'bob: I am Bob\n' });
});

test('run ends with 1 and says why where a turn failed', async () => {
  await makeRoom({ ann: [{ fail: { code: 'provider_auth', message: 'the key is wrong' } }] });
  const said = await command(data, ['run', 'room', 'hi']);
  expect(said).toMatchObject({ code: 1, out: '' });
  expect(said.err).toContain('the key is wrong');
  expect(said.err).not.toMatch(/\n\s+at /);
});

test('run ends with 4 where a limit was reached, and says which', async () => {
  await makeRoom({ ann: [{ say: '@bob go on' }], bob: [{ say: '@ann go on' }] }, { turnLimit: 1 });
  const said = await command(data, ['run', 'room', '@ann go']);
  expect(said.code).toBe(4);
  expect(said.out).toBe('ann: @bob go on\nbob: @ann go on\n');
  expect(said.err).toMatch(/limit/i);
});

test('run ends with 1 for a world or agent that does not exist', async () => {
  for (const args of [
    ['run', 'nowhere', 'hi'],
    ['run', 'demo', '--agent', 'nobody', 'hi'],
  ]) {
    const refused = await command(data, args);
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toMatch(/^parley: [^\n]+\n$/);
  }
});

test('run says so where the message wakes nobody', async () => {
  await makeRoom({ ann: [{ say: 'yes?' }] });
  const said = await command(data, ['run', 'room', '@anm hello']);
  expect(said).toMatchObject({ code: 0, out: '' });
  expect(said.err).toContain('did you mean @ann?');
  expect(said.err).toContain('nobody was woken');
});

test('run stops the agents and ends with 130 when it is interrupted, with 1 after --timeout', async () => {
  await makeRoom({ ann: [{ say: 'a very slow answer', delayMs: 60_000 }] });
  const interrupted = start(data, ['run', 'room', 'hi']);
  interrupted.child.stdin.end();
  await interrupted.untilErr(/→ ann/);
  interrupted.child.kill('SIGINT');
  expect(await interrupted.ended).toMatchObject({ code: 130, out: '' });
  const late = await command(data, ['run', 'room', 'hi', '--timeout', '0.2', '--json']);
  expect(late.code).toBe(1);
  expect(JSON.parse(late.out)).toMatchObject({ status: 'timeout', turns: [{ state: 'stopped' }] });
});

test('an agent cannot drive the terminal', async () => {
  await makeRoom({ ann: [{ say: 'red \u001b[31m and \u202egpj' }] });
  const said = await command(data, ['run', 'room', 'hi']);
  expect(said.out).toBe('ann: red \\x1b[31m and \\u{202e}gpj\n');
});

test('commands use the server that runs on the data directory', async () => {
  await makeRoom({ ann: [{ say: 'hello {{sender}}' }] });
  const server = await startServer(data);
  const said = await command(data, ['run', 'room', 'hi', '--json']);
  expect(said.code).toBe(0);
  const { chat } = JSON.parse(said.out) as { chat: string };
  const authorization = `Bearer ${readFileSync(server.line.tokenFile, 'utf8').trim()}`;
  const page = await fetch(`${server.line.url}/api/v1/worlds/room/chats/${chat}/messages`, {
    headers: { authorization },
  });
  expect(await page.json()).toMatchObject({ messages: [{ content: 'hi' }, { sender: { id: 'ann' } }] });
});

test('commands use a server that is named, and say so where it refuses or is not there', async () => {
  const server = await startServer(data);
  const elsewhere = temporaryFolder();
  const token = readFileSync(server.line.tokenFile, 'utf8').trim();
  const at = ['worlds', 'list', '--server', server.line.url];
  expect(await command(elsewhere, [...at, '--token', token])).toMatchObject({ code: 0, err: '' });
  expect(await command(elsewhere, [...at, '--token', 'wrong-wrong-wrong-wrong'])).toMatchObject({ code: 1, out: '' });
  server.child.kill('SIGTERM');
  await server.ended;
  const gone = await command(elsewhere, [...at, '--token', token]);
  expect(gone).toMatchObject({ code: 1, out: '' });
  expect(gone.err).toMatch(/^parley: cannot reach http:\/\/127[^\n]+\n$/);
});

test('chat answers the lines of a pipe one after another', async () => {
  await makeRoom({ ann: [{ say: 'turn {{turn}}: {{message}}' }] });
  const talked = await command(data, ['chat', 'room'], 'one\n\n/agents\ntwo\n');
  expect(talked.code).toBe(0);
  expect(talked.out).toBe('ann: turn 1: one\nann: turn 2: two\n');
  expect(talked.err).toContain('@ann');
});

test('chat goes on in a chat that is named', async () => {
  await makeRoom({ ann: [{ say: 'turn {{turn}}' }] });
  const chat = (await command(data, ['chats', 'create', 'room', '--title', 'Ours'])).out.trim();
  await command(data, ['chat', 'room', '--chat', chat], 'one\n');
  const talked = await command(data, ['chat', 'room', '--chat', chat], 'two\n');
  expect(talked.out).toBe('ann: turn 2\n');
  const shown = await command(data, ['chats', 'show', 'room', chat]);
  expect(shown.out).toMatch(/^\S+: one\nann: turn 1\n\S+: two\nann: turn 2\n$/);
});
