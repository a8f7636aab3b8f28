import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import {
  closeProviders,
  collect,
  failure,
  joined,
  request,
  startProvider,
} from '../../tests/support/provider-calls.ts';
import { openAiEvents, type StubReply } from '../../tests/support/provider-stub.ts';

afterEach(closeProviders);

describe('openai-compatible', () => {
  test('goes without stream options and with the other token limit where a server refuses them', async () => {
    const complain = (message: string): StubReply => ({
      raw: {
        status: 400,
        headers: { 'content-type': 'application/json' },
        body: [JSON.stringify({ error: { message } })],
      },
    });
    const { model, stub } = await startProvider('openai', ({ body }) => {
      if ('stream_options' in body) return complain('Unrecognized request argument: stream_options');
      if ('max_tokens' in body)
        return complain("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.");
      return { text: 'ok' };
    });
    await collect(model, request({ model: 'local' }));
    await collect(model, request({ model: 'local' }));
    expect(stub.requests).toHaveLength(4);
    expect(stub.requests[3]?.body).toMatchObject({ max_completion_tokens: 4096 });
  });

  test('a limit that is only too high is an error, not a lesson', async () => {
    const { model, stub } = await startProvider('openai', () => ({
      raw: { status: 400, body: [JSON.stringify({ error: { message: 'max_tokens is too large: 4096' } })] },
    }));
    expect(await failure(model, request({ model: 'local' }))).toMatchObject({ code: 'provider_invalid_request' });
    expect(stub.requests).toHaveLength(1);
  });

  test('reasoning models get neither max_tokens nor a temperature', async () => {
    const { model, stub } = await startProvider('openai', () => ({ text: 'ok' }));
    await collect(model, request({ model: 'gpt-5.4-mini', temperature: 0.2, reasoningEffort: 'high' }));
    const body = stub.requests[0]?.body ?? {};
    expect(body).toMatchObject({ max_completion_tokens: 4096, reasoning_effort: 'high' });
    expect(body).not.toHaveProperty('temperature');
    expect(body).not.toHaveProperty('max_tokens');
  });

  test('finishes without [DONE], and keeps an answer whose connection is cut after its finish', async () => {
    const events = openAiEvents({ text: 'all of it' });
    const body = events.slice(0, -2);
    for (const ending of ['end', 'cut'] as const) {
      const { model } = await startProvider('openai', () => ({ raw: { body, ending } }));
      expect(joined(await collect(model))).toEqual([
        { type: 'text', text: 'all of it' },
        { type: 'finish', stop: 'end' },
      ]);
    }
  });

  test('thinking that a server leaves in the text is reasoning, however it is cut', async () => {
    const text = '<think>secret 思考 </thin plan</think>\n\nThe answer, with <think> in it.';
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: text.length }), async (chunkSize) => {
        const { model } = await startProvider('openai', () => ({ text, chunkSize }));
        expect(joined(await collect(model)).slice(0, 2)).toEqual([
          { type: 'reasoning', text: 'secret 思考 </thin plan' },
          { type: 'text', text: 'The answer, with <think> in it.' },
        ]);
      }),
      { numRuns: 15 },
    );
  });

  test('joins tool calls without an index, or that share one', async () => {
    const delta = (call: object): string =>
      `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [call] } }] })}\n\n`;
    const body = [
      delta({ index: 0, id: 'a', function: { name: 'Read', arguments: '{"x":' } }),
      delta({ index: 0, function: { arguments: '1}' } }),
      delta({ index: 0, id: 'b', function: { name: 'Glob', arguments: '{}' } }),
      delta({ id: 'c', function: { name: 'Grep', arguments: '{}' } }),
      'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n',
    ];
    const { model } = await startProvider('openai', () => ({ raw: { body } }));
    expect(await collect(model)).toEqual([
      { type: 'toolCall', id: 'a', name: 'Read', args: { x: 1 }, raw: '{"x":1}' },
      { type: 'toolCall', id: 'b', name: 'Glob', args: {}, raw: '{}' },
      { type: 'toolCall', id: 'c', name: 'Grep', args: {}, raw: '{}' },
      { type: 'finish', stop: 'tool' },
    ]);
  });

  test('an empty account is not tried again', async () => {
    const error = { code: 'insufficient_quota', type: 'insufficient_quota', message: 'You exceeded your quota' };
    const { model } = await startProvider('openai', () => ({
      raw: { status: 429, body: [JSON.stringify({ error })] },
    }));
    expect(await failure(model)).toMatchObject({ code: 'provider_rate_limited', retryable: false });
  });
});
