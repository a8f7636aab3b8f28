import { expect, test } from 'vitest';
import { safeName, safeText } from './safe-text.ts';

test.each([
  ['colours', '\u001b[31mred', '\\x1b[31mred'],
  ['a window title', '\u001b]0;owned\u0007', '\\x1b]0;owned\\x07'],
  ['the one-byte CSI', '\u009b2J', '\\x9b2J'],
  ['a carriage return that overwrites the line', 'safe\rrm -rf', 'safe\\x0drm -rf'],
  ['backspaces', 'ab\b\bcd', 'ab\\x08\\x08cd'],
  ['an override of direction', 'a\u202egpj.exe', 'a\\u{202e}gpj.exe'],
])('shows %s of a message as text', (_what, text, shown) => {
  expect(safeText(text)).toBe(shown);
});

test('leaves lines, tabs, every script and joined emoji as they are', () => {
  const text = 'one\n\ttwo — 小明 שלום 👩‍👩‍👧';
  expect(safeText(text)).toBe(text);
  expect(safeText('a\r\nb')).toBe('a\nb');
});

test('shows invisible characters of a name, so that two names never look the same', () => {
  expect(safeName('al\u200bice')).toBe('al\\u{200b}ice');
  expect(safeName('alice\n\u001b[1mbob')).toBe('alice\\n\\x1b[1mbob');
  expect(safeName('tag\u{e0041}')).toBe('tag\\u{e0041}');
});
