/** What models cost. The one place to change a price that ships; an owner's own table comes first. */
import type { Prices } from '../ports.ts';
import type { ModelPrice, PriceTable } from '../protocol/settings.ts';

const FREE: ModelPrice = Object.freeze({ input: 0, cachedInput: 0, output: 0 });

/** Providers whose tokens nobody pays for. */
const FREE_PROVIDERS: ReadonlySet<string> = new Set(['script', 'ollama']);

/** Anthropic asks 1.25 times the input for what it writes to its five-minute cache. */
const anthropic = (input: number, cachedInput: number, output: number): ModelPrice => ({
  ...{ input, cachedInput, output },
  cacheWrite: input * 1.25,
});
const openai = (input: number, cachedInput: number, output: number): ModelPrice => ({ input, cachedInput, output });

/**
 * USD per million tokens, by provider; a star stands for the dates and variants that cost the same.
 * Sources, as of October 2026: https://platform.claude.com/docs/en/about-claude/pricing and
 * https://openai.com/api/pricing
 */
const ANTHROPIC: PriceTable = {
  'claude-opus-5-5*': anthropic(4, 0.2, 20),
  'claude-sonnet-5-5*': anthropic(2, 0.1, 10),
  'claude-haiku-5-5*': {
    ...anthropic(0.1, 0.01, 0.5),
    longPrompt: { above: 100_000, input: 0.5, cachedInput: 0.05, cacheWrite: 0.625, output: 2.5 },
  },
  'claude-opus-5': anthropic(5, 0.5, 25),
  'claude-sonnet-5': anthropic(2, 0.2, 10),
  'claude-opus-4-5*': anthropic(5, 0.5, 25),
  'claude-opus-4-6*': anthropic(5, 0.5, 25),
  'claude-opus-4-7*': anthropic(5, 0.5, 25),
  'claude-opus-4-8*': anthropic(5, 0.5, 25),
  'claude-sonnet-4-5*': anthropic(3, 0.3, 15),
  'claude-sonnet-4-6*': anthropic(3, 0.3, 15),
  'claude-haiku-4-5*': anthropic(1, 0.1, 5),
};
const OPENAI: PriceTable = {
  'gpt-5.5': openai(5, 0.5, 30),
  'gpt-5.4': {
    ...openai(2.5, 0.25, 15),
    longPrompt: { above: 272_000, ...openai(5, 0.5, 22.5) },
  },
  'gpt-5.4-mini*': openai(0.75, 0.075, 4.5),
  'gpt-5.4-nano*': openai(0.2, 0.02, 1.25),
  'gpt-5': openai(1.25, 0.125, 10),
  'gpt-5-mini*': openai(0.25, 0.025, 2),
  'gpt-5-nano*': openai(0.05, 0.005, 0.4),
  'gpt-4.1': openai(2, 0.5, 8),
  'gpt-4.1-mini*': openai(0.4, 0.1, 1.6),
  'gpt-4.1-nano*': openai(0.1, 0.025, 0.4),
};

const SHIPPED: ReadonlyMap<string, PriceTable> = new Map([
  ['anthropic', ANTHROPIC],
  ['openai', OPENAI],
]);

/**
 * The owner's prices, then those that ship. An exact name beats a beginning, a longer beginning a shorter one. A
 * provider that is only compatible may charge anything: without the owner's word its models have no price.
 */
export function openPrices(own: PriceTable): Prices {
  return {
    find(provider, model) {
      if (FREE_PROVIDERS.has(provider)) return lookUp(own, model) ?? FREE;
      return lookUp(own, model) ?? lookUp(SHIPPED.get(provider) ?? {}, model);
    },
  };
}

function lookUp(table: PriceTable, model: string): ModelPrice | null {
  if (Object.hasOwn(table, model) && !model.endsWith('*')) return table[model] ?? null;
  let best: { length: number; price: ModelPrice } | null = null;
  for (const [name, price] of Object.entries(table)) {
    if (!name.endsWith('*') || !model.startsWith(name.slice(0, -1))) continue;
    if (best === null || name.length > best.length) best = { length: name.length, price };
  }
  return best?.price ?? null;
}
