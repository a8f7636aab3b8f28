import { expect, test } from 'vitest';
import { openPrices } from './prices.ts';
import { PROVIDERS } from './providers.ts';

const shipped = openPrices({});

test.each(PROVIDERS.flatMap(({ id, models }) => models.map((model) => [id, model] as const)))(
  '%s: %s has a price, and reading the cache is not dearer than reading',
  (provider, model) => {
    const price = shipped.find(provider, model);
    expect(price).not.toBeNull();
    expect(price?.cachedInput ?? price?.input).toBeLessThanOrEqual(price?.input ?? -1);
  },
);

test('costs nothing where nobody is paid', () => {
  expect(shipped.find('script', 'demo:planner')).toMatchObject({ input: 0, output: 0 });
  expect(shipped.find('ollama', 'whatever:7b')).toMatchObject({ input: 0, output: 0 });
});

test('knows a dated name of a model, but no variant that costs something else', () => {
  expect(shipped.find('anthropic', 'claude-sonnet-4-5-20250929')).toMatchObject({ input: 3, output: 15 });
  expect(shipped.find('openai', 'gpt-5.4-pro')).toBeNull();
  expect(shipped.find('openai', 'gpt-5-mini')).toMatchObject({ input: 0.25 });
});

test('does not guess what a compatible server asks', () => {
  expect(shipped.find('openai-compatible', 'gpt-5.4')).toBeNull();
  expect(shipped.find('test', 'claude-sonnet-5-5')).toBeNull();
  expect(shipped.find('__proto__', 'toString')).toBeNull();
});

test("the owner's price comes first: an exact name, then the longest beginning", () => {
  const price = (input: number) => ({ input, output: input });
  const prices = openPrices({ 'gpt-*': price(1), 'gpt-5.4*': price(2), 'gpt-5.4': price(3), '*': price(9) });
  expect(prices.find('openai', 'gpt-5.4')).toEqual(price(3));
  expect(prices.find('openai', 'gpt-5.4-mini')).toEqual(price(2));
  expect(prices.find('openai-compatible', 'gpt-x')).toEqual(price(1));
  expect(prices.find('openai-compatible', 'other')).toEqual(price(9));
  expect(prices.find('ollama', 'llama3.2')).toEqual(price(9));
});
