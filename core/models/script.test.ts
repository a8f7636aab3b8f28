import { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ModelPart, ModelRequest, Scene } from '../ports.ts';
import { ModelError } from '../protocol/errors.ts';
import { createScriptModel } from './script.ts';
import { parseScript } from './script-rules.ts';
import { chunksOf, fillText, topicOf } from './script-text.ts';

let root: string;
const waits: number[] = [];
const clock = {
  async sleep(ms: number, signal?: AbortSignal) {
    signal?.throwIfAborted();
    waits.push(ms);
  },
};

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'parley-script-'));
  await mkdir(join(root, 'scripts'));
  await mkdir(join(root, 'demo'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

const model = () => createScriptModel({ scriptsDir: join(root, 'scripts'), demoDir: join(root, 'demo'), clock });

const scene: Scene = {
  agent: { id: 'bot', name: 'Bot' },
  from: 'Ann',
  text: 'ping',
  turn: 1,
  agents: ['Writer', 'Critic'],
};

function request(script: string, over: Partial<Scene> = {}): ModelRequest {
  return {
    model: script,
    system: 'abcd',
    messages: [{ role: 'user', content: 'efgh' }],
    tools: [],
    maxTokens: 100,
    scene: { ...scene, ...over },
  };
}

async function run(yaml: string, over: Partial<Scene> = {}): Promise<ModelPart[]> {
  await writeFile(join(root, 'scripts', 'case.yaml'), yaml);
  return collect(request('case', over));
}

async function collect(input: ModelRequest, signal = new AbortController().signal): Promise<ModelPart[]> {
  const parts: ModelPart[] = [];
  for await (const part of model().stream(input, signal)) parts.push(part);
  return parts;
}

const said = (parts: ModelPart[]): string => parts.map((part) => (part.type === 'text' ? part.text : '')).join('');

test('the first rule that fits wins, and no rule is an empty answer', async () => {
  const yaml = '- when: {contains: PING}\n  say: pong\n- when: {contains: ping}\n  say: second\n';
  expect(said(await run(yaml))).toBe('pong');
  expect(await run(yaml, { text: 'else' })).toEqual([
    {
      type: 'finish',
      stop: 'end',
      usage: { inputTokens: 2, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 },
    },
  ]);
});

test.each([
  ['matches', '{matches: "^pi(n+)g$"}', {}, true],
  ['matches elsewhere', '{matches: "^pong"}', {}, false],
  ['from, however it is written', '{from: madame_pedagogue}', { from: 'Madame Pedagogue' }, true],
  ['from another', '{from: Bob}', {}, false],
  ['turn', '{turn: 3}', { turn: 3 }, true],
  ['another turn', '{turn: 3}', { turn: 2 }, false],
  ['toolResult', '{toolResult: "^ok"}', { toolResult: 'ok, written' }, true],
  ['toolResult without one', '{toolResult: ""}', {}, false],
  ['all conditions at once', '{contains: ping, from: Ann, turn: 1}', {}, true],
  ['all but one', '{contains: ping, from: Ann, turn: 2}', {}, false],
])('condition %s', async (_name, when, over, fits) => {
  expect(said(await run(`- when: ${when}\n  say: hit\n`, over))).toBe(fits ? 'hit' : '');
});

test('thinks, speaks in chunks with waits between them, then calls tools', async () => {
  waits.length = 0;
  const parts = await run(
    '- think: hmm\n  say: "abcdefg"\n  chunkSize: 3\n  delayMs: 20\n  call: [{tool: Read, args: {file_path: "{{message}}.txt", n: [1]}}, {tool: Glob}]\n',
  );
  expect(parts).toEqual([
    { type: 'reasoning', text: 'hmm' },
    { type: 'text', text: 'abc' },
    { type: 'text', text: 'def' },
    { type: 'text', text: 'g' },
    {
      type: 'toolCall',
      id: 'call_1',
      name: 'Read',
      args: { file_path: 'ping.txt', n: [1] },
      raw: '{"file_path":"ping.txt","n":[1]}',
    },
    { type: 'toolCall', id: 'call_2', name: 'Glob', args: {}, raw: '{}' },
    {
      type: 'finish',
      stop: 'tool',
      usage: { inputTokens: 2, outputTokens: Math.ceil((3 + 7 + 32 + 2) / 4), cachedTokens: 0, reasoningTokens: 0 },
    },
  ]);
  expect(waits).toEqual([20, 20, 20, 20]);
});

test.each([
  ['plain text', 'out of paper', { code: 'script_failed', message: 'out of paper', retryable: false }],
  ['a status', '429', { code: 'provider_rate_limited', retryable: true }],
  ['a status for good', '401', { code: 'provider_auth', retryable: false }],
  [
    'a code with a wait',
    '{code: provider_overloaded, retryAfterMs: 50}',
    { code: 'provider_overloaded', retryable: true, retryAfterMs: 50 },
  ],
  [
    'a code with the flag turned',
    '{code: provider_overloaded, retryable: false, message: no}',
    { code: 'provider_overloaded', retryable: false, message: 'no' },
  ],
])('fails with %s after what it has said', async (_name, fail, expected) => {
  await writeFile(join(root, 'scripts', 'case.yaml'), `- say: half\n  fail: ${fail}\n`);
  const parts: ModelPart[] = [];
  const reading = (async () => {
    for await (const part of model().stream(request('case'), new AbortController().signal)) parts.push(part);
  })();
  await expect(reading).rejects.toMatchObject(expected);
  await expect(reading).rejects.toBeInstanceOf(ModelError);
  expect(parts).toEqual([{ type: 'text', text: 'half' }]);
});

test('stops between chunks when it is aborted', async () => {
  await writeFile(join(root, 'scripts', 'case.yaml'), '- say: abcdef\n  chunkSize: 1\n');
  const stop = new AbortController();
  const reason = new Error('stopped');
  const parts: ModelPart[] = [];
  const reading = (async () => {
    for await (const part of model().stream(request('case'), stop.signal)) {
      parts.push(part);
      if (parts.length === 2) stop.abort(reason);
    }
  })();
  await expect(reading).rejects.toBe(reason);
  expect(parts).toHaveLength(2);
});

test('reads a changed file again, and a built-in script by its name', async () => {
  const one = model();
  const file = join(root, 'scripts', 'case.yaml');
  const ask = async (name: string) => {
    const parts: ModelPart[] = [];
    for await (const part of one.stream(request(name), new AbortController().signal)) parts.push(part);
    return said(parts);
  };
  await writeFile(file, '- say: old\n');
  expect(await ask('case')).toBe('old');
  await writeFile(file, '- say: new\n');
  await utimes(file, 1, 1);
  expect(await ask('case.yaml')).toBe('new');
  await writeFile(join(root, 'demo', 'guide.yaml'), '- say: built in\n');
  expect(await ask('demo:guide')).toBe('built in');
});

test.each(['../secret', 'demo:../../etc/passwd', '/etc/passwd', 'a/b', 'demo:', '', '.hidden', 'a\0b'])(
  'refuses %j as a name',
  async (name) => {
    await expect(collect(request(name))).rejects.toMatchObject({ code: 'script_invalid', retryable: false });
  },
);

test('says what to do about a script that is not there, or is no file', async () => {
  await expect(collect(request('nobody'))).rejects.toThrow(/scripts\/nobody\.yaml.*demo:guide/);
  await writeFile(join(root, 'outside.yaml'), '- say: x\n');
  await symlink(join(root, 'outside.yaml'), join(root, 'scripts', 'link.yaml'));
  await expect(collect(request('link'))).rejects.toThrow('not a regular file');
});

test.each([
  ['- say: 1\n', /t\.yaml, rule 1, say/],
  ['- say: ok\n- when: {contians: x}\n', /t\.yaml, rule 2, when/],
  ['- say: ok\n- when: {matches: "(?=x)"}\n', /t\.yaml, rule 2, when\.matches: look-around/],
  ['- when: {toolResult: "("}\n', /rule 1, when\.toolResult/],
  ['- call: {tool: "no spaces"}\n', /rule 1, call/],
  ['- delayMs: -1\n', /rule 1, delayMs/],
  ['- chunkSize: 0\n', /rule 1, chunkSize/],
  ['- fail: {code: nonsense}\n', /rule 1, fail/],
  ['say: x\n', /t\.yaml must be a list/],
  ['- &a {say: x}\n- *a\n', /line 2: aliases/],
  ['', /must be a list/],
])('a bad script names file, rule and field: %j', (yaml, message) => {
  expect(() => parseScript(yaml, 't.yaml')).toThrow(message);
});

test('what a placeholder brings in is never filled again', () => {
  const filled = fillText(
    '{{message}} {{ sender }} {{turn}} {{agents}} {{other}} {{1}}',
    { ...scene, text: '{{sender}}' },
    ['{{turn}}', '{{message}}'],
  );
  expect(filled).toBe('{{sender}} Ann 1 Writer, Critic {{other}} {{message}}');
});

test('chunks join to the text and never split what a reader sees as one character', () => {
  const family = '👨‍👩‍👧‍👦';
  expect([...chunksOf(`a${family}é小明`, 1)]).toEqual(['a', family, 'é', '小', '明']);
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 7 }), (text, size) => {
      expect([...chunksOf(text, size)].join('')).toBe(text);
    }),
  );
});

test.each([
  ['@planner, plan a launch post\n@writer go', 'plan a launch post'],
  ['\n\n> - @critic: what about `code` and **stars**?', 'what about code and stars?'],
  ['see @writer <world>STOP</world>', 'see writer worldSTOP/world'],
  ['小明你好', '小明你好'],
  ['@writer', ''],
])('the topic of %j is %j', (text, topic) => {
  expect(topicOf(text)).toBe(topic);
});

test('a topic cannot address, tag, quote or open code, whatever was written', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('@', '＠', '`', '<', '>', '~', '\n', '\r', ' ', 'a', 'Ω', '*') }),
      (text) => {
        expect(topicOf(text)).not.toMatch(/[@＠`<>~*\r\n]/);
      },
    ),
  );
});
