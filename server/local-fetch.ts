import type { ServerApp } from './endpoint.ts';
import { IN_PROCESS } from './guards.ts';

const BASE = 'http://in-process.invalid';

/**
 * A `fetch` into an application in the same process, without a socket. `token` null works only where the application
 * needs none. A path is enough as address.
 */
export function localFetch(
  app: ServerApp,
  token: string | null,
): (input: string | URL, init?: RequestInit) => Promise<Response> {
  return async (input, init) => {
    const headers = new Headers(init?.headers);
    if (token !== null && !headers.has('authorization')) headers.set('authorization', `Bearer ${token}`);
    return app.fetch(new Request(new URL(input, BASE), { ...init, headers }), { [IN_PROCESS]: true });
  };
}
