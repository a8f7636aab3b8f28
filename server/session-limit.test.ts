import { expect, it } from 'vitest';
import { failureLimit } from './session-limit.ts';
import { frameAllowance } from './socket.ts';

it('blocks an address after its failures, and lets it try again a minute after the first', () => {
  let now = 0;
  const limit = failureLimit(2, () => now);
  limit.failed('a');
  now = 30_000;
  expect(limit.isBlocked('a')).toBe(false);
  limit.failed('a');
  expect([limit.isBlocked('a'), limit.isBlocked('b')]).toEqual([true, false]);
  now = 59_999;
  expect(limit.isBlocked('a')).toBe(true);
  now = 60_000;
  expect(limit.isBlocked('a')).toBe(false);
});

it('remembers a bounded number of addresses', () => {
  const limit = failureLimit(1, () => 0);
  limit.failed('first');
  for (let n = 0; n < 10_000; n += 1) limit.failed(`a${n}`);
  expect([limit.isBlocked('first'), limit.isBlocked('a9999')]).toEqual([false, true]);
});

it('allows a burst of frames, then as many as time gives back', () => {
  let now = 0;
  const allowed = frameAllowance(10, 3, () => now);
  const tries = (count: number) => Array.from({ length: count }, allowed).filter(Boolean).length;
  expect(tries(5)).toBe(3);
  now = 200;
  expect(tries(5)).toBe(2);
  now = 100_000;
  expect(tries(5)).toBe(3);
});
