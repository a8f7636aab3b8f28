import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { manualTimers } from '../../tests/support/manual-timers.ts';
import { collect, joined, modelAt, PROTOCOLS, request } from '../../tests/support/provider-calls.ts';

/** A stub that others wrote: it knows the protocols from the real APIs and not from us. */
const mock = new LLMock({ port: 0, chunkSize: 3 });
beforeAll(async () => {
  mock.onMessage('hello', { content: 'Hi there, 小明 🎉!', reasoning: 'Let me think.' });
  mock.onMessage('read it', { toolCalls: [{ name: 'Read', arguments: '{"file_path":"a.md"}' }] });
  await mock.start();
});
afterAll(() => mock.stop());

const urlOf = (protocol: string): string => (protocol === 'openai' ? `${mock.url}/v1` : mock.url);

test.each(PROTOCOLS)('%s streams text from an independent stub', async (protocol) => {
  const model = modelAt(protocol, urlOf(protocol), manualTimers());
  const parts = joined(await collect(model, request({ messages: [{ role: 'user', content: 'hello' }] })));
  expect(parts.find((part) => part.type === 'text')).toEqual({ type: 'text', text: 'Hi there, 小明 🎉!' });
  expect(parts.at(-1)).toMatchObject({ type: 'finish', stop: 'end', usage: { outputTokens: expect.any(Number) } });
});

test.each(PROTOCOLS)('%s reads a tool call from an independent stub', async (protocol) => {
  const model = modelAt(protocol, urlOf(protocol), manualTimers());
  const tools = [{ name: 'Read', description: 'Reads', parameters: { type: 'object', properties: {} } }];
  const parts = await collect(model, request({ tools, messages: [{ role: 'user', content: 'read it' }] }));
  expect(parts.find((part) => part.type === 'toolCall')).toMatchObject({ name: 'Read', args: { file_path: 'a.md' } });
  expect(parts.at(-1)).toMatchObject({ type: 'finish', stop: 'tool' });
});
