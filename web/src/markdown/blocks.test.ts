import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { growingParser, parseBlocks, sectionsOf } from './blocks.ts';

const SAMPLE = `# Title

A paragraph with *emphasis*.

- one
- two

  more of two

\`\`\`ts
const a = 1;

const b = 2;
\`\`\`

| a | b |
|---|---|
| 1 | 2 |

> quoted
still quoted

1. x
2. y
`;
const kinds = (text: string): string[] => parseBlocks(text).map(({ token }) => token.type);

describe('a text that grows', () => {
  it('ends as the same blocks, however it is cut', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 60 }), (cuts) => {
        const parse = growingParser();
        let end = 0;
        for (const cut of cuts) {
          end = Math.min(SAMPLE.length, end + cut);
          parse(SAMPLE.slice(0, end));
        }
        expect(parse(SAMPLE).map(({ token }) => token.raw.trim())).toEqual(
          parseBlocks(SAMPLE).map(({ token }) => token.raw.trim()),
        );
      }),
      { numRuns: 50 },
    );
  });

  it('leaves finished blocks the same objects', () => {
    const parse = growingParser();
    const [first] = parse('one\n\ntwo\n\nthr');
    expect(parse('one\n\ntwo\n\nthree')[0]).toBe(first);
  });

  it('is read anew when it is another text', () => {
    const parse = growingParser();
    parse('# a\n\nb');
    expect(parse('c').map(({ token }) => token.raw)).toEqual(['c']);
  });
});

describe('a long text', () => {
  it('is cut without losing a character', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('word ', '\n\n', '```\n', '~~~\n', '- x\n', 'x'.repeat(900)), { maxLength: 300 }),
        (parts) => {
          const text = parts.join('');
          expect(sectionsOf(text).join('')).toBe(text);
        },
      ),
      { numRuns: 50 },
    );
  });

  it('keeps a long fence in one piece', () => {
    const text = `before\n\n\`\`\`\n${'line\n\n'.repeat(5000)}\`\`\`\n\nafter`;
    expect(kinds(text)).toEqual(['paragraph', 'code', 'paragraph']);
  });

  const hostile: readonly [name: string, text: string][] = [
    ['brackets', '['.repeat(100_000)],
    ['quotes', '>'.repeat(50_000)],
    ['stars', '*a **a '.repeat(15_000)],
    ['backticks', '`a``b```'.repeat(12_000)],
    ['lists', Array.from({ length: 3000 }, (_, depth) => `${' '.repeat(depth % 300)}- x`).join('\n')],
    ['angles', '<'.repeat(100_000)],
    ['links', '[a]('.repeat(25_000)],
  ];
  for (const [name, text] of hostile) {
    it(`of ${name} is read in bounded time and never throws`, () => {
      const started = performance.now();
      parseBlocks(text);
      expect(performance.now() - started).toBeLessThan(4000);
    });
  }
});
