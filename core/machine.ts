import { randomBytes } from 'node:crypto';
import type { Clock, Ids } from './ports.ts';

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      }, ms);
      signal?.addEventListener('abort', onAbort, { once: true });
    }),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

const POOL_BYTES = 4096;
const ID_BYTES = 15;

/** Random ids: 120 bits in base64url after a prefix. */
export function randomIds(): Ids {
  let pool = Buffer.alloc(0);
  let used = 0;
  return {
    make(kind) {
      if (used + ID_BYTES > pool.length) {
        pool = randomBytes(POOL_BYTES);
        used = 0;
      }
      const id = pool.toString('base64url', used, used + ID_BYTES);
      used += ID_BYTES;
      return `${kind}_${id}`;
    },
  };
}
