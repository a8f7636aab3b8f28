import fc from 'fast-check';
import { expect, it } from 'vitest';
import { jsonErrorPosition } from './json-position.ts';

it.each([
  ['', 0],
  ['{', 1],
  ['{"a":1,}', 7],
  ['{"a" 1}', 5],
  ['[1,]', 3],
  ['[1 2]', 3],
  ['{"a":1} x', 8],
  ["{'a':1}", 1],
  ['{"a":tru}', 5],
  ['{"a":"b', 5],
  ['{"a":01}', 6],
  ['[1}', 2],
  ['undefined', 0],
  ['  nul', 2],
])('%j breaks at %i', (text, position) => {
  expect(() => JSON.parse(text)).toThrow();
  expect(jsonErrorPosition(text)).toBe(position);
});

it('points at what follows a whole text', () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      expect(jsonErrorPosition(`${json} @`)).toBe(json.length + 1);
    }),
  );
});

it('points inside a text that was cut', () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(), (json, cut) => {
      const text = json.slice(0, cut % json.length);
      fc.pre(isBroken(text));
      expect(jsonErrorPosition(text)).toBeLessThanOrEqual(text.length);
    }),
  );
});

it('never throws and ends on any text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      fc.pre(isBroken(text));
      expect(jsonErrorPosition(text)).toBeLessThanOrEqual(text.length);
    }),
  );
});

it('takes linear time on a megabyte of brackets', () => {
  expect(jsonErrorPosition('['.repeat(1_000_000))).toBe(1_000_000);
  expect(jsonErrorPosition(`"${'a'.repeat(1_000_000)}`)).toBe(0);
});

function isBroken(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch {
    return true;
  }
}
