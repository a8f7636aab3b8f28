import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from './api.ts';
import { untilReached } from './until-reached.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const away = () => new ApiError('offline', 'away', 0);

test('repeats a read until the server is back', async () => {
  let calls = 0;
  const answer = untilReached(async () => {
    if (++calls < 3) throw away();
    return 'here';
  });
  await vi.runAllTimersAsync();
  expect(await answer).toBe('here');
  expect(calls).toBe(3);
});

test('throws what is no matter of the connection, at once', async () => {
  const refused = new ApiError('forbidden', 'no', 403);
  await expect(untilReached(() => Promise.reject(refused))).rejects.toBe(refused);
});

test('ends when nobody wants the answer any more', async () => {
  let isWanted = true;
  const answer = untilReached(
    () => Promise.reject(away()),
    () => isWanted,
  );
  isWanted = false;
  await vi.runAllTimersAsync();
  expect(await answer).toBeNull();
});
