import { describe, expect, it } from 'vitest';
import { decodeEntities } from './entities.ts';
import { safeHref } from './links.ts';

describe('a link', () => {
  const dead = [
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    ' javascript:alert(1)',
    'java\nscript:alert(1)',
    'java\tscript:alert(1)',
    '\u0001javascript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:https://x.org/1',
    'about:blank',
    'view-source:https://x.org',
    '/api/v1/worlds',
    '//evil.example',
    '#fragment',
    'https://',
    '',
  ];
  for (const href of dead) it(`is dead: ${JSON.stringify(href)}`, () => expect(safeHref(href)).toBeNull());

  const alive: readonly [string, string][] = [
    ['https://x.org/a?b=c#d', 'https://x.org/a?b=c#d'],
    ['HTTP://X.org', 'http://x.org/'],
    ['mailto:a@b.c', 'mailto:a@b.c'],
  ];
  for (const [href, url] of alive) it(`leads to ${url}`, () => expect(safeHref(href)).toBe(url));
});

describe('an entity', () => {
  const cases: readonly [string, string][] = [
    ['a &amp; b', 'a & b'],
    ['&lt;script&gt;', '<script>'],
    ['&#39;&#x27;', "''"],
    ['&#x1F600;', '😀'],
    ['&#0;&#xD800;', '\ufffd\ufffd'],
    ['&nothing; &constructor; & &;', '&nothing; &constructor; & &;'],
    ['&amp;lt;', '&lt;'],
  ];
  for (const [text, decoded] of cases) it(`${text} is ${decoded}`, () => expect(decodeEntities(text)).toBe(decoded));
});
