import { z } from 'zod';
import { MAX_PAGE } from '../../core/protocol/requests.ts';

/** A whole number in a query string, from 0 to the greatest safe integer. */
export const WholeNumber = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a whole number')
  .transform(Number);

/** Page size: more than 500 is cut. */
export const limitOf = (usual: number) =>
  WholeNumber.refine((limit) => limit > 0, 'must be at least 1')
    .transform((limit) => Math.min(limit, MAX_PAGE))
    .default(usual);
