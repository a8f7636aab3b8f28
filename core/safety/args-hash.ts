import { createHash } from 'node:crypto';

/** JSON with sorted keys: equal values give equal text, whatever the order they were written in. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : inner,
  );
}

/** What an approval and a grant are bound to: the tool and its exact arguments. SHA-256 in hex. */
export function argsHash(tool: string, args: Record<string, unknown>): string {
  return createHash('sha256')
    .update(canonicalJson([tool, args]))
    .digest('hex');
}
