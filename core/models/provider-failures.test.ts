import { afterEach, describe, expect, test } from 'vitest';
import {
  closeProviders,
  collect,
  eventsOf,
  failure,
  joined,
  KEY,
  modelAt,
  PROTOCOLS,
  RICH,
  request,
  startProvider,
  until,
} from '../../tests/support/provider-calls.ts';
import type { StubRaw } from '../../tests/support/provider-stub.ts';
import type { Model, ModelPart } from '../ports.ts';

afterEach(closeProviders);

describe.each(PROTOCOLS)('%s', (protocol) => {
  const events = eventsOf(protocol, RICH);

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
    const { model, stub } = await startProvider(protocol, () => ({ raw }));
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
    const { model } = await startProvider(protocol, () => ({ raw: { status: 429, headers } }));
    expect((await failure(model)).retryAfterMs).toBe(wait);
  });

  test('an address where nothing listens is named', async () => {
    const { stub, timers } = await startProvider(protocol, () => ({ text: '' }));
    await stub.close();
    const error = await failure(modelAt(protocol, stub.url, timers));
    expect(error).toMatchObject({ code: 'provider_unreachable', retryable: false });
    expect(error.message).toContain(stub.url);
  });

  test('a connection cut before any answer may be tried again', async () => {
    const { model } = await startProvider(protocol, () => ({ raw: { ending: 'refuse' } }));
    expect(await failure(model)).toMatchObject({ code: 'provider_stream_broken', retryable: true });
  });

  test('a provider that never begins to answer ends with a time-out', async () => {
    const { model, stub, timers } = await startProvider(protocol, () => ({ raw: { ending: 'silent' } }));
    const failed = failure(model);
    await until(() => stub.requests.length > 0);
    await timers.fire(120_000);
    expect(await failed).toMatchObject({ code: 'provider_timeout', retryable: true });
    await stub.aborted(1);
  });

  test('a provider that falls silent in the middle ends with a time-out', async () => {
    const { model, stub, timers } = await startProvider(protocol, () => ({ raw: { body: [half], ending: 'hang' } }));
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
    const { model, stub, timers } = await startProvider(protocol, () => ({ raw }));
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
    const { model, stub, timers } = await startProvider(protocol, () => ({ raw: { body: [half], ending: 'hang' } }));
    for await (const part of model.stream(request(), new AbortController().signal)) {
      expect(part.type).toBe('reasoning');
      break;
    }
    await stub.aborted(1);
    expect(timers.pending()).toEqual([]);
  });

  test('a refused temperature is left out from then on', async () => {
    const { model, stub } = await startProvider(protocol, ({ body }) =>
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
