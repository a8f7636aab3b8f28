import { expect, it } from 'vitest';
import { hueOf, monogramOf } from './identity.ts';

it('gives every name letters of its own', () => {
  const cases: readonly [string, string][] = [
    ['Planner', 'Pl'],
    ['Copy Writer', 'CW'],
    ['小明', '小明'],
    ['🤖', '·'],
    ['x', 'X'],
  ];
  for (const [name, letters] of cases) expect(monogramOf(name), name).toBe(letters);
});

it('gives an id one hue for ever, and the agents of the demo world hues far apart', () => {
  const hues = ['planner', 'writer', 'critic'].map(hueOf);
  expect(hues).toEqual(['planner', 'writer', 'critic'].map(hueOf));
  for (const [index, hue] of hues.entries()) {
    for (const other of hues.slice(index + 1)) {
      const distance = Math.abs(hue - other);
      expect(Math.min(distance, 360 - distance)).toBeGreaterThan(40);
    }
  }
});
