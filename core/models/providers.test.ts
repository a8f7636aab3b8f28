import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { type ManualTimers, manualTimers } from '../../tests/support/manual-timers.ts';
import {
  anthropicEvents,
  openAiEvents,
  type ProviderStub,
  type StubAnswer,
  type StubProtocol,
  type StubRaw,
  type StubReply,
  type StubRequest,
  startProviderStub,
} from '../../tests/support/provider-stub.ts';
import type { Model, ModelPart, ModelRequest } from '../ports.ts';
import { ModelError } from '../protocol/errors.ts';
import { createSecrets } from '../safety/redact.ts';
import { createAnthropicModel } from './anthropic.ts';
import { createOpenAiModel } from './openai-compatible.ts';

const KEY = 'sk-very-secret-key-123';
const stubs: ProviderStub[] = [];
afterEach(async () => {
  await Promise.all(stubs.splice(0).map((stub) => stub.close()));
});

const PROTOCOLS: StubProtocol[] = ['anthropic', 'openai'];
const eventsOf = (protocol: StubProtocol, answer: StubAnswer): string =>
  (protocol === 'anthropic' ? anthropicEvents(answer) : openAiEvents(answer)).join('');

async function start(
  protocol: StubProtocol,
  reply: (request: StubRequest, index: number) => StubReply | Promise<StubReply>,
): Promise<{ stub: ProviderStub; model: Model; timers: ManualTimers }> {
  const stub = await startProviderStub(protocol, reply);
  stubs.push(stub);
  const timers = manualTimers();
  return { stub, model: modelAt(protocol, stub.url, timers), timers };
}

function modelAt(protocol: StubProtocol, baseUrl: string, clock: ManualTimers): Model {
  const secrets = createSecrets();
  secrets.add(KEY);
  const make = protocol === 'anthropic' ? createAnthropicModel : createOpenAiModel;
  return make({
    provider: protocol,
    name: protocol === 'anthropic' ? 'Anthropic' : 'OpenAI',
    baseUrl,
    apiKey: KEY,
    keyVariable: protocol === 'anthropic' ? 'ANTHROPIC_API_KEY' : 'OPENAI_API_KEY',
    secrets,
    clock,
    idleTimeoutMs: 60_000,
    firstByteTimeoutMs: 120_000,
  });
}

function request(over: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: 'claude-haiku-4-5',
    system: 'You are kind.',
    messages: [{ role: 'user', content: 'Ann: hello' }],
    tools: [],
    maxTokens: 4096,
    scene: { agent: { id: 'a', name: 'A' }, from: 'Ann', text: 'hello', turn: 1, agents: [] },
    ...over,
  };
}

async function collect(model: Model, input = request(), signal = new AbortController().signal): Promise<ModelPart[]> {
  const parts: ModelPart[] = [];
  for await (const part of model.stream(input, signal)) parts.push(part);
  return parts;
}

async function failure(model: Model, input = request()): Promise<ModelError> {
  try {
    await collect(model, input);
  } catch (error) {
    if (error instanceof ModelError) return error;
    throw error;
  }
  throw new Error('the call did not fail');
}

/** Joins neighbouring text, so that chunking does not matter. */
function joined(parts: readonly ModelPart[]): ModelPart[] {
  const out: ModelPart[] = [];
  for (const part of parts) {
    const last = out.at(-1);
    if ((part.type === 'text' || part.type === 'reasoning') && last?.type === part.type) {
      out[out.length - 1] = { type: part.type, text: last.text + part.text };
    } else out.push(part);
  }
  return out;
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise<void>((resolve) => setImmediate(resolve));
}

const bytes = (text: string): Uint8Array[] => Array.from(Buffer.from(text), (byte) => Uint8Array.of(byte));

const RICH: StubAnswer = {
  think: '让我想想 🤔',
  text: 'Hi 👨‍👩‍👧‍👦, 小明! Ünïcode “quotes”\n\nand {json: "like"} \\n text',
  calls: [
    { id: 'toolu_1', name: 'Read', args: { file_path: 'ä/文件 🎉.md' } },
    { id: 'toolu_2', name: 'Glob', args: {} },
  ],
  usage: { input: 100, output: 42, cached: 60, reasoning: 0 },
};

function richParts(protocol: StubProtocol): ModelPart[] {
  const readArgs = RICH.calls?.[0]?.args as Record<string, unknown>;
  const finish = {
    type: 'finish' as const,
    stop: 'tool' as const,
    usage: { inputTokens: 100, outputTokens: 42, cachedTokens: 60, reasoningTokens: 0 },
  };
  return [
    { type: 'reasoning', text: RICH.think ?? '' },
    { type: 'text', text: RICH.text ?? '' },
    { type: 'toolCall', id: 'toolu_1', name: 'Read', args: readArgs, raw: JSON.stringify(readArgs) },
    { type: 'toolCall', id: 'toolu_2', name: 'Glob', args: {}, raw: '{}' },
    protocol === 'openai'
      ? finish
      : {
          ...finish,
          providerState: {
            provider: 'anthropic',
            blocks: [
              { type: 'thinking', thinking: RICH.think, signature: 'c2lnbmVk' },
              { type: 'text', text: RICH.text },
              { type: 'tool_use', id: 'toolu_1', name: 'Read', input: readArgs },
              { type: 'tool_use', id: 'toolu_2', name: 'Glob', input: {} },
            ],
          },
        },
  ];
}

describe.each(PROTOCOLS)('%s', (protocol) => {
  const events = eventsOf(protocol, RICH);

  test('streams thinking, text, tool calls in pieces and usage', async () => {
    const { model, stub } = await start(protocol, () => RICH);
    const parts = await collect(model);
    expect(joined(parts)).toEqual(richParts(protocol));
    expect(parts.filter((part) => part.type === 'text').length).toBeGreaterThan(3);
    const headers = stub.requests[0]?.headers;
    expect(protocol === 'anthropic' ? headers?.['x-api-key'] : headers?.authorization).toContain(KEY);
  });

  test('gives the same parts when every byte is a chunk of its own', async () => {
    const { model } = await start(protocol, () => ({ raw: { body: bytes(events) } }));
    expect(joined(await collect(model))).toEqual(richParts(protocol));
  });

  test('gives the same parts however the bytes are split and lines are ended', async () => {
    let body: Uint8Array[] = [];
    const { model } = await start(protocol, () => ({ raw: { body } }));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { maxLength: 12 }), fc.constantFrom('\n', '\r\n'), async (cuts, newline) => {
        const all = Buffer.from(events.replaceAll('\n', newline));
        const at = [...new Set(cuts.map((cut) => cut % all.length))].sort((a, b) => a - b);
        body = [...at, all.length].map((end, index) => all.subarray(at[index - 1] ?? 0, end));
        expect(joined(await collect(model))).toEqual(richParts(protocol));
      }),
      { numRuns: 25 },
    );
  });

  test('reads a line of more than a megabyte', async () => {
    const text = 'long 长 '.repeat(150_000);
    const { model } = await start(protocol, () => ({ text, chunkSize: text.length }));
    expect(joined(await collect(model))[0]).toEqual({ type: 'text', text });
  });

  test('leaves usage out where the provider tells none', async () => {
    const { model } = await start(protocol, () => ({ text: 'hi', usage: null }));
    expect(await collect(model)).toEqual([
      { type: 'text', text: 'hi' },
      { type: 'finish', stop: 'end' },
    ]);
  });

  test('an answer without any text is a finish alone', async () => {
    const { model } = await start(protocol, () => ({ usage: null }));
    expect(await collect(model)).toEqual([{ type: 'finish', stop: 'end' }]);
  });

  test.each([
    ['[1,2]', null],
    ['{"a": 1', null],
    ['"text"', null],
    ['', {}],
  ])('tool arguments %j become %j with what was written', async (raw, args) => {
    const { model } = await start(protocol, () => ({ calls: [{ id: 'c1', name: 'Read', args: raw }] }));
    const call = (await collect(model)).find((part) => part.type === 'toolCall');
    expect(call).toEqual({ type: 'toolCall', id: 'c1', name: 'Read', args, raw });
  });

  test.each([
    [protocol === 'anthropic' ? 'max_tokens' : 'length', 'length'],
    [protocol === 'anthropic' ? 'refusal' : 'content_filter', 'refused'],
    [protocol === 'anthropic' ? 'end_turn' : 'stop', 'end'],
  ])('stop reason %s is %s', async (stop, expected) => {
    const { model } = await start(protocol, () => ({ text: 'x', stop }));
    expect((await collect(model)).at(-1)).toMatchObject({ type: 'finish', stop: expected });
  });

  const html = '<!doctype html><html><body>Sign in</body></html>';
  const half = events.slice(0, events.indexOf('\n\n', Math.floor(events.length / 2)) + 2);
  const errorEvent = (type: string): string => {
    const error = { type, message: 'try later' };
    return protocol === 'anthropic'
      ? `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`
      : `data: ${JSON.stringify({ error })}\n\n`;
  };
  const json = { 'content-type': 'application/json' };
  const says = (message: string): string[] => [JSON.stringify({ error: { type: 'x', message } })];

  test.each<[string, StubRaw, string, boolean, RegExp]>([
    [
      '401',
      { status: 401, headers: json, body: says(`bad key ${KEY}`) },
      'provider_auth',
      false,
      /_API_KEY or the key/,
    ],
    ['403', { status: 403, headers: json }, 'provider_auth', false, /403/],
    ['400', { status: 400, headers: json, body: says('too long') }, 'provider_invalid_request', false, /too long/],
    ['404', { status: 404, headers: json, body: says('no model x') }, 'provider_invalid_request', false, /no model x/],
    ['422', { status: 422 }, 'provider_invalid_request', false, /422/],
    ['408', { status: 408 }, 'provider_timeout', true, /408/],
    ['429', { status: 429 }, 'provider_rate_limited', true, /429/],
    ['500', { status: 500, body: [html] }, 'provider_overloaded', true, /500$/],
    ['529', { status: 529, headers: json, body: says('Overloaded') }, 'provider_overloaded', true, /Overloaded/],
    [
      'a redirect',
      { status: 302, headers: { location: 'http://evil.test/x' } },
      'provider_invalid_request',
      false,
      /evil\.test/,
    ],
    ['half a stream that ends', { body: [half] }, 'provider_stream_broken', true, /broke off/],
    ['half a stream that is cut', { body: [half], ending: 'cut' }, 'provider_stream_broken', true, /broke off/],
    ['no event at all', { body: [] }, 'provider_stream_broken', true, /broke off/],
    ['a page', { headers: { 'content-type': 'text/html' }, body: [html] }, 'provider_nonsense', false, /text\/html/],
    ['broken JSON', { body: ['event: message_start\ndata: {"a":\n\n'] }, 'provider_nonsense', false, /not JSON/],
    [
      'an odd shape',
      {
        body: [
          'event: content_block_start\ndata: {"type":"content_block_start","choices":[{"delta":{"tool_calls":7}}]}\n\n',
        ],
      },
      'provider_nonsense',
      false,
      /shape/,
    ],
    [
      'an overload inside the stream',
      { body: [half, errorEvent('overloaded_error')] },
      'provider_overloaded',
      true,
      /try later/,
    ],
    [
      'a rate limit inside the stream',
      { body: [errorEvent('rate_limit_error')] },
      'provider_rate_limited',
      true,
      /try later/,
    ],
    [
      'a bad request inside the stream',
      { body: [errorEvent('invalid_request_error')] },
      'provider_invalid_request',
      false,
      /try later/,
    ],
    ['an unknown error inside the stream', { body: [errorEvent('novel')] }, 'provider_overloaded', true, /try later/],
  ])('%s is a typed error without the key', async (_name, raw, code, retryable, message) => {
    const { model, stub } = await start(protocol, () => ({ raw }));
    const error = await failure(model);
    expect({ code: error.code, retryable: error.retryable }).toEqual({ code, retryable });
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain(KEY);
    expect(error.message).not.toContain('<');
    expect(stub.requests).toHaveLength(1);
  });

  test.each([
    [{ 'retry-after': '7' }, 7000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after-ms': '250', 'retry-after': '9' }, 250],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Thu, 01 Jan 2015 00:00:00 GMT' }, 0],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
  ])('a 429 with %j asks to wait %s ms', async (headers, wait) => {
    const { model } = await start(protocol, () => ({ raw: { status: 429, headers } }));
    expect((await failure(model)).retryAfterMs).toBe(wait);
  });

  test('an address where nothing listens is named', async () => {
    const { stub, timers } = await start(protocol, () => ({ text: '' }));
    await stub.close();
    const error = await failure(modelAt(protocol, stub.url, timers));
    expect(error).toMatchObject({ code: 'provider_unreachable', retryable: false });
    expect(error.message).toContain(stub.url);
  });

  test('a connection cut before any answer may be tried again', async () => {
    const { model } = await start(protocol, () => {
      stubs[0]?.close().catch(() => undefined);
      return { raw: { ending: 'silent' } };
    });
    expect(await failure(model)).toMatchObject({ code: 'provider_stream_broken', retryable: true });
  });

  test('a provider that never begins to answer ends with a time-out', async () => {
    const { model, stub, timers } = await start(protocol, () => ({ raw: { ending: 'silent' } }));
    const failed = failure(model);
    await until(() => stub.requests.length > 0);
    await timers.fire(120_000);
    expect(await failed).toMatchObject({ code: 'provider_timeout', retryable: true });
    await stub.aborted(1);
  });

  test('a provider that falls silent in the middle ends with a time-out', async () => {
    const { model, stub, timers } = await start(protocol, () => ({ raw: { body: [half], ending: 'hang' } }));
    const parts: ModelPart[] = [];
    const reading = (async () => {
      for await (const part of model.stream(request(), new AbortController().signal)) {
        parts.push(part);
      }
    })();
    const failed = expect(reading).rejects.toMatchObject({ code: 'provider_timeout', retryable: true });
    await until(() => parts.length > 3);
    // A firing that finds that something was heard meanwhile sets the timer again.
    const isOver = failed.then(() => true);
    while (!(await Promise.race([isOver, timers.fire(60_000).then(() => false)])));
    await stub.aborted(1);
  });

  test.each(['before the answer', 'in the middle'])('an abort %s closes the connection at once', async (when) => {
    const raw: StubRaw = when === 'in the middle' ? { body: [half], ending: 'hang' } : { ending: 'silent' };
    const { model, stub, timers } = await start(protocol, () => ({ raw }));
    const stop = new AbortController();
    const reason = new Error('stopped by Ann');
    const reading = collectUntil(model, stop.signal, () => {
      if (when === 'in the middle') stop.abort(reason);
    });
    if (when === 'before the answer') {
      await until(() => stub.requests.length > 0);
      stop.abort(reason);
    }
    await expect(reading).rejects.toBe(reason);
    await stub.aborted(1);
    expect(timers.pending()).toEqual([]);
  });

  test('a reader that leaves closes the connection', async () => {
    const { model, stub, timers } = await start(protocol, () => ({ raw: { body: [half], ending: 'hang' } }));
    for await (const part of model.stream(request(), new AbortController().signal)) {
      expect(part.type).toBe('reasoning');
      break;
    }
    await stub.aborted(1);
    expect(timers.pending()).toEqual([]);
  });

  test('a refused temperature is left out from then on', async () => {
    const { model, stub } = await start(protocol, ({ body }) =>
      'temperature' in body
        ? { raw: { status: 400, headers: json, body: says("'temperature' is not supported with this model") } }
        : { text: 'ok' },
    );
    const input = request({ temperature: 0.5 });
    expect(joined(await collect(model, input))[0]).toEqual({ type: 'text', text: 'ok' });
    expect(joined(await collect(model, input))[0]).toEqual({ type: 'text', text: 'ok' });
    expect(stub.requests.map(({ body }) => 'temperature' in body)).toEqual([true, false, false]);
  });
});

async function collectUntil(model: Model, signal: AbortSignal, onPart: () => void): Promise<void> {
  for await (const _part of model.stream(request(), signal)) onPart();
}

describe('openai alone', () => {
  test('goes without stream options and with the other token limit where a server refuses them', async () => {
    const complain = (message: string): StubReply => ({
      raw: {
        status: 400,
        headers: { 'content-type': 'application/json' },
        body: [JSON.stringify({ error: { message } })],
      },
    });
    const { model, stub } = await start('openai', ({ body }) => {
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
    const { model, stub } = await start('openai', () => ({
      raw: { status: 400, body: [JSON.stringify({ error: { message: 'max_tokens is too large: 4096' } })] },
    }));
    expect(await failure(model, request({ model: 'local' }))).toMatchObject({ code: 'provider_invalid_request' });
    expect(stub.requests).toHaveLength(1);
  });

  test('reasoning models get neither max_tokens nor a temperature', async () => {
    const { model, stub } = await start('openai', () => ({ text: 'ok' }));
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
      const { model } = await start('openai', () => ({ raw: { body, ending } }));
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
        const { model } = await start('openai', () => ({ text, chunkSize }));
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
    const { model } = await start('openai', () => ({ raw: { body } }));
    expect(await collect(model)).toEqual([
      { type: 'toolCall', id: 'a', name: 'Read', args: { x: 1 }, raw: '{"x":1}' },
      { type: 'toolCall', id: 'b', name: 'Glob', args: {}, raw: '{}' },
      { type: 'toolCall', id: 'c', name: 'Grep', args: {}, raw: '{}' },
      { type: 'finish', stop: 'tool' },
    ]);
  });

  test('an empty account is not tried again', async () => {
    const error = { code: 'insufficient_quota', type: 'insufficient_quota', message: 'You exceeded your quota' };
    const { model } = await start('openai', () => ({ raw: { status: 429, body: [JSON.stringify({ error })] } }));
    expect(await failure(model)).toMatchObject({ code: 'provider_rate_limited', retryable: false });
  });
});

describe('anthropic alone', () => {
  const ask = async (over: Partial<ModelRequest>) => {
    const { model, stub } = await start('anthropic', () => ({ text: 'ok' }));
    await collect(model, request(over));
    return stub.requests[0]?.body ?? {};
  };

  test.each([
    ['claude-haiku-4-5', 'low', 4096, { type: 'enabled', budget_tokens: 2048 }],
    ['claude-haiku-4-5-20251001', 'high', 4096, { type: 'enabled', budget_tokens: 3072 }],
    ['claude-opus-4-20250514', 'high', 64_000, { type: 'enabled', budget_tokens: 16_384 }],
    ['claude-haiku-4-5', 'low', 1500, undefined],
    ['claude-sonnet-4-6', 'medium', 4096, { type: 'adaptive', display: 'summarized' }],
    ['claude-sonnet-5-5', 'medium', 100, { type: 'adaptive', display: 'summarized' }],
  ] as const)('%s with effort %s and %i tokens thinks as %j', async (model, reasoningEffort, maxTokens, thinking) => {
    const body = await ask({ model, reasoningEffort, maxTokens, temperature: 0.3 });
    expect(body['thinking']).toEqual(thinking);
    expect('temperature' in body).toBe(thinking === undefined);
  });

  test('a refused thinking budget becomes adaptive thinking', async () => {
    const { model, stub } = await start('anthropic', ({ body }) =>
      JSON.stringify(body['thinking']).includes('enabled')
        ? {
            raw: {
              status: 400,
              body: [JSON.stringify({ error: { message: '"thinking.type.enabled" is not supported' } })],
            },
          }
        : { text: 'ok' },
    );
    await collect(model, request({ reasoningEffort: 'low' }));
    expect(stub.requests.map(({ body }) => (body['thinking'] as { type: string }).type)).toEqual([
      'enabled',
      'adaptive',
    ]);
  });

  test('hands signed thinking back in the tool loop and caches the stable front', async () => {
    const { model, stub } = await start('anthropic', (_request, index) => (index === 1 ? RICH : { text: 'done' }));
    const first = await collect(model, request({ reasoningEffort: 'low', tools: [tool('Read')] }));
    const finish = first.at(-1);
    if (finish?.type !== 'finish' || !finish.providerState) throw new Error('no state');
    const calls = first.flatMap((part) => (part.type === 'toolCall' ? [{ ...part, args: part.args ?? {} }] : []));
    await collect(
      model,
      request({
        reasoningEffort: 'low',
        tools: [tool('Read')],
        messages: [
          { role: 'user', content: 'Ann: hello' },
          { role: 'assistant', content: RICH.text ?? '', toolCalls: calls, providerState: finish.providerState },
          { role: 'tool', results: calls.map(({ id, name }) => ({ id, name, content: 'ok', isError: false })) },
        ],
      }),
    );
    const body = stub.requests[1]?.body as { messages: { content: { type: string }[] }[]; thinking: object };
    expect(body.messages[1]?.content).toEqual((finish.providerState.blocks as unknown[]).slice());
    expect(body.thinking).toEqual({ type: 'enabled', budget_tokens: 2048 });
    expect(body.messages[0]?.content.at(-1)).toHaveProperty('cache_control');
    expect(body.messages[2]?.content.at(-1)).toHaveProperty('cache_control');
    expect(body).toHaveProperty('system.0.cache_control');
  });

  test('a loop without its signed thinking goes on without a budget', async () => {
    const body = await ask({
      reasoningEffort: 'low',
      tools: [tool('Read')],
      messages: [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: '', toolCalls: [{ id: 'c', name: 'Read', args: {} }] },
        { role: 'tool', results: [{ id: 'c', name: 'Read', content: 'ok', isError: false }] },
      ],
    });
    expect(body).not.toHaveProperty('thinking');
  });
});

const tool = (name: string) => ({ name, description: `Does ${name}`, parameters: { properties: {} } });
