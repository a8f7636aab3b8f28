import type { Site } from './site.ts';
import { within } from './site.ts';

export interface Answer<T = Record<string, unknown>> {
  status: number;
  body: T;
  /** How often the call was made until this answer came. */
  tries: number;
}

export interface CallOptions {
  key?: string;
  /** Called with each answer's status as soon as its head is there. */
  onHead?: (status: number) => void;
}

const MAX_TRIES = 60;

/**
 * Calls the API as a good client does: when the connection breaks because the server died it waits for the next
 * server and calls again with the same key. Throws where a connection breaks and the server lives.
 */
export async function call<T = Record<string, unknown>>(
  site: Site,
  method: string,
  path: string,
  body?: unknown,
  options: CallOptions = {},
): Promise<Answer<T>> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const { url, token, gone } = await site.up();
    const headers: Record<string, string> = { authorization: `Bearer ${token}` };
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (options.key !== undefined) headers['idempotency-key'] = options.key;
    try {
      const response = await fetch(`${url}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      options.onHead?.(response.status);
      const text = await response.text();
      if (response.status === 423 || response.status === 503) {
        await within(gone, `${method} ${path} was refused with ${response.status}, and the server did not end`);
        continue;
      }
      return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as T, tries };
    } catch (error) {
      await within(gone, `${method} ${path} broke off (${String(error)}), and the server did not end`);
    }
  }
  throw new Error(`${method} ${path} got no answer in ${MAX_TRIES} tries`);
}

/** A call that must succeed. */
export async function must<T = Record<string, unknown>>(...args: Parameters<typeof call>): Promise<T> {
  const answer = await call<T>(...args);
  if (answer.status >= 300) {
    throw new Error(`${args[1]} ${args[2]} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  }
  return answer.body;
}
