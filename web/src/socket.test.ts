import { expect, it } from 'vitest';
import { retryDelay } from './socket.ts';

it('waits longer with each try, never longer than 15 s, and never all pages at once', () => {
  const delays = Array.from({ length: 12 }, (_, tries) => retryDelay(tries, 1));
  expect(delays[0]).toBe(400);
  expect([...delays].sort((a, b) => a - b)).toEqual(delays);
  expect(retryDelay(1000, 1)).toBe(15_000);
  expect(retryDelay(3, 0)).toBeLessThan(retryDelay(3, 1));
});
