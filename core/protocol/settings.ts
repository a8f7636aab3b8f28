import { z } from 'zod';

const Usd = z.number().nonnegative().max(1_000_000).describe('USD per million tokens');
const Rates = {
  input: Usd,
  cachedInput: Usd.optional().describe('read from the provider’s cache; default: input'),
  cacheWrite: Usd.optional().describe('written to the provider’s cache; default: input'),
  output: Usd,
};

/** What a model's tokens cost, in USD per million. */
export const ModelPrice = z.strictObject({
  ...Rates,
  longPrompt: z
    .strictObject({ ...Rates, above: z.int().positive().describe('tokens of the prompt') })
    .optional()
    .describe('what every token of a call costs whose prompt is longer'),
});
export type ModelPrice = z.infer<typeof ModelPrice>;

/** Prices by a model's name, or by its beginning where the name ends in `*`. */
export const PriceTable = z.record(
  z
    .string()
    .regex(/^[^*]{0,256}\*?$/, 'is a model’s name; a star may only end it')
    .min(1),
  ModelPrice,
);
export type PriceTable = z.infer<typeof PriceTable>;

/** What the owner sets in `config.yaml` of the data directory. */
export const OwnerSettings = z.strictObject({ prices: PriceTable.default({}) });
export type OwnerSettings = z.infer<typeof OwnerSettings>;
