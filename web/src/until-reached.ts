import { ApiError } from './api.ts';

const REST_MS = 2000;

/**
 * Repeats a read until the server can be reached again; that it is away is shown already. Any other failure is thrown.
 * Null: nobody wants the answer any more.
 */
export async function untilReached<T>(call: () => Promise<T>, isWanted: () => boolean = () => true): Promise<T | null> {
  while (isWanted()) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'offline') throw error;
      await new Promise((resolve) => setTimeout(resolve, REST_MS));
    }
  }
  return null;
}
