import type { z } from 'zod';
import { AppError } from '../core/protocol/errors.ts';

interface Issue {
  /** Dotted path of the field; empty for the whole. */
  path: string;
  message: string;
}

const MAX_ISSUES = 20;

function flatten(issue: z.core.$ZodIssue): Issue[] {
  const path = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: path === '' ? key : `${path}.${key}`, message: 'unknown field' }));
  }
  return [{ path, message: issue.message }];
}

/** Turns what a schema found into AppError `invalid`, whose message names the first fields and `details.issues` all. */
export function invalidInput(error: z.ZodError, what: string): AppError {
  const issues = error.issues.flatMap(flatten).slice(0, MAX_ISSUES);
  const named = issues.slice(0, 3).map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  const more = issues.length > 3 ? ` and ${issues.length - 3} more` : '';
  return new AppError('invalid', `Invalid ${what}: ${named.join('; ')}${more}`, { issues });
}

/** The parsed value, or AppError `invalid`. */
export function parseInput<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const result = schema.safeParse(value);
  if (!result.success) throw invalidInput(result.error, what);
  return result.data;
}
