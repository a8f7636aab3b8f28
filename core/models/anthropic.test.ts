import { afterEach, describe, expect, test } from 'vitest';
import { closeProviders, collect, RICH, request, startProvider, tool } from '../../tests/support/provider-calls.ts';
import type { ModelRequest } from '../ports.ts';

afterEach(closeProviders);

describe('anthropic', () => {
  const ask = async (over: Partial<ModelRequest>) => {
    const { model, stub } = await startProvider('anthropic', () => ({ text: 'ok' }));
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
    const { model, stub } = await startProvider('anthropic', ({ body }) =>
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
    const { model, stub } = await startProvider('anthropic', (_request, index) =>
      index === 1 ? RICH : { text: 'done' },
    );
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
