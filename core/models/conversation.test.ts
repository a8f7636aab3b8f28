import fc from 'fast-check';
import { expect, test } from 'vitest';
import { request } from '../../tests/support/provider-calls.ts';
import { checkAnthropic, checkOpenAi } from '../../tests/support/provider-checks.ts';
import type { ModelMessage, ModelRequest } from '../ports.ts';
import { anthropicRequest } from './anthropic-request.ts';
import { plainConversation } from './conversation.ts';
import { openAiRequest } from './openai-request.ts';

function complaints(input: ModelRequest): string[] {
  // As the server reads it, through JSON.
  const wire = (body: unknown): unknown => JSON.parse(JSON.stringify(body));
  return [
    ...checkAnthropic(wire(anthropicRequest(input, new Set()))),
    ...checkOpenAi(wire(openAiRequest(input, new Set(), false))),
  ];
}

const call = (id: string, name = 'Read') => ({ id, name, args: { x: 1 } });
const result = (id: string, content = 'ok') => ({ id, name: 'Read', content, isError: false });

test.each<[string, ModelMessage[]]>([
  ['nothing', []],
  ['blank texts alone', [{ role: 'user', content: ' \n' }]],
  ['several people in a row', ['Ann: hi', 'Bob: hi', '小明: 你好'].map((content) => ({ role: 'user', content }))],
  ['an assistant first', [{ role: 'assistant', content: 'hi', toolCalls: [] }]],
  [
    'an assistant last',
    [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b', toolCalls: [] },
    ],
  ],
  [
    'a result without its call',
    [
      { role: 'tool', results: [result('c')] },
      { role: 'user', content: 'a' },
    ],
  ],
  [
    'a call without its result',
    [
      { role: 'assistant', content: '', toolCalls: [call('c')] },
      { role: 'user', content: 'a' },
    ],
  ],
  [
    'half of the results',
    [
      { role: 'assistant', content: '', toolCalls: [call('c'), call('d')] },
      { role: 'tool', results: [result('d')] },
    ],
  ],
  [
    'a result twice',
    [
      { role: 'assistant', content: '', toolCalls: [call('c')] },
      { role: 'tool', results: [result('c'), result('c')] },
    ],
  ],
  [
    'one id used in two turns',
    [call('c'), call('c')].flatMap((c): ModelMessage[] => [
      { role: 'assistant', content: '', toolCalls: [c] },
      { role: 'tool', results: [result('c')] },
    ]),
  ],
  [
    'ids of another provider',
    [
      { role: 'assistant', content: '', toolCalls: [call('call|1.2/é'), call(`x${'y'.repeat(80)}`)] },
      { role: 'tool', results: [result('call|1.2/é'), result(`x${'y'.repeat(80)}`)] },
    ],
  ],
  [
    'tool names that are not ASCII',
    [
      { role: 'assistant', content: '', toolCalls: [call('c', '読む ファイル')] },
      { role: 'tool', results: [result('c', '')] },
    ],
  ],
  [
    'half an emoji',
    [
      { role: 'user', content: `cut ${'🎉'.slice(0, 1)}` },
      { role: 'assistant', content: '\udc00', toolCalls: [{ id: 'c', name: 'Read', args: { path: '\ud83c' } }] },
    ],
  ],
])('a history with %s gives valid requests', (_name, messages) => {
  expect(complaints(request({ messages }))).toEqual([]);
});

const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 8 }), fc.constantFrom('', ' ', '\n', 'hello', '\ud83d'));
const id = fc.constantFrom('a', 'b', 'call_1', 'call_2', 'é|1', '');
const message: fc.Arbitrary<ModelMessage> = fc.oneof(
  fc.record({ role: fc.constant('user' as const), content: text }),
  fc.record({
    role: fc.constant('assistant' as const),
    content: text,
    toolCalls: fc.array(fc.record({ id, name: text, args: fc.dictionary(fc.string(), text, { maxKeys: 2 }) }), {
      maxLength: 3,
    }),
  }),
  fc.record({
    role: fc.constant('tool' as const),
    results: fc.array(fc.record({ id, name: text, content: text, isError: fc.boolean() }), { maxLength: 3 }),
  }),
);

test('every history gives valid requests', () => {
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 12 }),
      text,
      fc.constantFrom(undefined, 'low' as const, 'high' as const),
      fc.array(fc.record({ name: text, description: text, parameters: fc.constant({}) }), { maxLength: 3 }),
      fc.integer({ min: 1, max: 40_000 }),
      (messages, system, effort, tools, maxTokens) => {
        const input = request({ messages, system, tools, maxTokens, temperature: 0.5 });
        expect(complaints(effort === undefined ? input : { ...input, reasoningEffort: effort })).toEqual([]);
      },
    ),
    { numRuns: 400 },
  );
});

test('keeps what everybody said, in order', () => {
  const plain = plainConversation([
    { role: 'user', content: 'one' },
    { role: 'user', content: 'two' },
    { role: 'assistant', content: 'three', toolCalls: [] },
    { role: 'assistant', content: 'four', toolCalls: [call('c')] },
    { role: 'tool', results: [result('c', 'five')] },
    { role: 'user', content: 'six' },
  ]);
  expect(plain).toMatchObject([
    { role: 'user', texts: ['one', 'two'] },
    { role: 'assistant', text: 'three\n\nfour', calls: [{ id: 'c' }] },
    { role: 'user', results: [{ id: 'c', content: 'five' }], texts: ['six'] },
  ]);
});
