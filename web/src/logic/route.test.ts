import { expect, it } from 'vitest';
import { parseRoute, pathOf } from './route.ts';

it('reads every path that it writes', () => {
  for (const [world, chat] of [
    ['demo', null],
    ['demo', 'c_1'],
    ['小明', 'a b/c'],
    ['x%2f', 'é?#'],
  ] as const) {
    expect(parseRoute(pathOf(world, chat))).toEqual({ page: 'world', world, chat });
  }
});

it('knows a path that leads nowhere', () => {
  for (const path of ['/x', '/w', '/w/a/b', '/w/a/c/d/e', '/w/%E0%A4%A', '/w/a/c']) {
    expect(parseRoute(path).page, path).toBe('unknown');
  }
  expect(parseRoute('/').page).toBe('worlds');
});
