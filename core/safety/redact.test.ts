import { expect, test } from 'vitest';
import { createSecrets } from './redact.ts';

test('masks every known value, plain and in a URL', () => {
  const secrets = createSecrets();
  secrets.add('sk-test/12345+6');
  expect(secrets.redact('key sk-test/12345+6, twice sk-test/12345+6')).toBe('key [redacted], twice [redacted]');
  expect(secrets.redact('https://x.test/?key=sk-test%2F12345%2B6')).toBe('https://x.test/?key=[redacted]');
});

test('leaves no rest of a value that holds another', () => {
  const secrets = createSecrets();
  secrets.add('abcdefgh');
  secrets.add('abcdefgh-suffix');
  expect(secrets.redact('abcdefgh-suffix abcdefgh')).toBe('[redacted] [redacted]');
});

test('does not mask short values that are words', () => {
  const secrets = createSecrets();
  secrets.add('key');
  expect(secrets.redact('the key')).toBe('the key');
});
