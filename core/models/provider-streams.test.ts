import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import {
  bytes,
  closeProviders,
  collect,
  eventsOf,
  joined,
  KEY,
  PROTOCOLS,
  RICH,
  richParts,
  startProvider,
} from '../../tests/support/provider-calls.ts';

afterEach(closeProviders);

describe.each(PROTOCOLS)('%s', (protocol) => {
  const events = eventsOf(protocol, RICH);

  test('streams thinking, text, tool calls in pieces and usage', async () => {
    const { model, stub } = await startProvider(protocol, () => RICH);
    const parts = await collect(model);
    expect(joined(parts)).toEqual(richParts(protocol));
    expect(parts.filter((part) => part.type === 'text').length).toBeGreaterThan(3);
    const headers = stub.requests[0]?.headers;
    expect(protocol === 'anthropic' ? headers?.['x-api-key'] : headers?.authorization).toContain(KEY);
  });

  test('gives the same parts when every byte is a chunk of its own', async () => {
    const { model } = await startProvider(protocol, () => ({ raw: { body: bytes(events) } }));
    expect(joined(await collect(model))).toEqual(richParts(protocol));
  });

  test('gives the same parts however the bytes are split and lines are ended', async () => {
    let body: Uint8Array[] = [];
    const { model } = await startProvider(protocol, () => ({ raw: { body } }));
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
    const { model } = await startProvider(protocol, () => ({ text, chunkSize: text.length }));
    expect(joined(await collect(model))[0]).toEqual({ type: 'text', text });
  });

  test('leaves usage out where the provider tells none', async () => {
    const { model } = await startProvider(protocol, () => ({ text: 'hi', usage: null }));
    expect(await collect(model)).toEqual([
      { type: 'text', text: 'hi' },
      { type: 'finish', stop: 'end' },
    ]);
  });

  test('an answer without any text is a finish alone', async () => {
    const { model } = await startProvider(protocol, () => ({ usage: null }));
    expect(await collect(model)).toEqual([{ type: 'finish', stop: 'end' }]);
  });

  test.each([
    ['[1,2]', null],
    ['{"a": 1', null],
    ['"text"', null],
    ['', {}],
  ])('tool arguments %j become %j with what was written', async (raw, args) => {
    const { model } = await startProvider(protocol, () => ({ calls: [{ id: 'c1', name: 'Read', args: raw }] }));
    const call = (await collect(model)).find((part) => part.type === 'toolCall');
    expect(call).toEqual({ type: 'toolCall', id: 'c1', name: 'Read', args, raw });
  });

  test.each([
    [protocol === 'anthropic' ? 'max_tokens' : 'length', 'length'],
    [protocol === 'anthropic' ? 'refusal' : 'content_filter', 'refused'],
    [protocol === 'anthropic' ? 'end_turn' : 'stop', 'end'],
  ])('stop reason %s is %s', async (stop, expected) => {
    const { model } = await startProvider(protocol, () => ({ text: 'x', stop }));
    expect((await collect(model)).at(-1)).toMatchObject({ type: 'finish', stop: expected });
  });
});
