import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AgentId } from '../protocol/ids.ts';
import { addressToken, compileRoster, lookupName, parseMentions, type RosterAgent } from './mentions.ts';
import { route } from './router.ts';
import { rosterOf, senderOf } from './routing-case.ts';

const roster = rosterOf([
  { id: 'alice', name: 'Alice' },
  { id: 'alice-please', name: 'Alice Please' },
  { id: 'bob', name: 'Bob', status: 'inactive' },
  { id: '小明', name: '小明' },
  { id: 'josé', name: 'José', displayName: 'Dr. J' },
  { id: 'constructor', name: '__proto__' },
]);

/** Text from the pieces that the grammar is made of, with whatever else between. */
const message = fc
  .array(
    fc.oneof(
      {
        weight: 6,
        arbitrary: fc.constantFrom(
          ...[
            '@alice',
            '@Alice Please',
            '@bob',
            '＠小明',
            '@Jose\u0301',
            '@nobody',
            '@all',
            '@human',
            '@world',
            '@',
            '@@',
          ],
          ...[
            '`',
            '``',
            '```',
            '~~~',
            '> ',
            '- ',
            '1. ',
            '<!--',
            '-->',
            '\\',
            '*',
            '**',
            '_',
            '~~',
            '/',
            '&',
            '+',
            ',',
            '、',
          ],
          ...[
            '\n',
            '\r',
            '\r\n',
            ' ',
            '\t',
            '\u200b',
            '\ufe0f',
            'hey ',
            ' and ',
            "'s",
            '(',
            '.x',
            'https://',
            'www.',
            '://',
          ],
          ...[
            '<world>',
            '</world>',
            'STOP',
            'TO: alice',
            '<world>DONE</world>',
            '<world>TO: alice, bob</world>',
            '👍',
            '\ud83d',
          ],
        ),
      },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(''));

const sender = fc.constantFrom('human', 'world', 'agent:alice', 'agent:constructor', 'system', 'tool');

describe('any text', () => {
  it('is read without an error, and wakes each agent once, never an inactive one, never the sender', () => {
    fc.assert(
      fc.property(message, sender, fc.boolean(), (content, from, anywhere) => {
        const result = route({
          content,
          sender: senderOf(from),
          roster,
          settings: { mainAgent: null, humanMentions: anywhere ? 'anywhere' : 'line', agentBroadcasts: anywhere },
          replyTo: senderOf('agent:bob'),
        });
        const ids = result.woke.map(({ agentId }) => agentId as string);
        expect(new Set(ids).size).toBe(ids.length);
        expect(ids).not.toContain('bob');
        if (from.startsWith('agent:')) expect(ids).not.toContain(from.slice(6));
        const listed = result.ignored.map(({ text, reason }) => `${text} ${reason}`);
        expect(new Set(listed).size).toBe(listed.length);
      }),
      { numRuns: 800 },
    );
  });

  it('is published minus its control tags, trimmed when it had one, untouched when it had none', () => {
    fc.assert(
      fc.property(message, (content) => {
        const { published, tags } = parseMentions(content, roster);
        let rest = '';
        let at = 0;
        for (const tag of tags) {
          rest += content.slice(at, tag.start);
          at = tag.end;
          while (content[at] === ' ' || content[at] === '\t') at += 1;
        }
        rest += content.slice(at);
        if (tags.length > 0) rest = rest.trim();
        const seen = rest.replace(/[\p{Cf}\p{Variation_Selector}]/gu, '').trim();
        expect(published).toBe(seen === '' || seen === '\u034f' ? '' : rest);
      }),
      { numRuns: 800 },
    );
  });

  it('has mentions in ascending places, each beginning with its at-sign', () => {
    fc.assert(
      fc.property(message, (content) => {
        const { mentions, tags } = parseMentions(content, roster);
        let last = 0;
        for (const mention of mentions) {
          expect(mention.start).toBeGreaterThanOrEqual(last);
          expect(mention.end).toBeGreaterThan(mention.start + 1);
          last = mention.end;
          const cut = tags.some((tag) => tag.start >= mention.start && tag.end <= mention.end);
          const written = content.slice(mention.start, mention.end);
          if (cut) expect(written.length).toBeGreaterThan(mention.text.length);
          else expect(written).toBe(mention.text);
          expect('@＠').toContain(mention.text.charAt(0));
          if (mention.named.type === 'agent' && !cut) {
            expect(lookupName(mention.text.slice(1), roster)).toEqual(mention.named);
          }
        }
        expect(last).toBeLessThanOrEqual(content.length);
      }),
      { numRuns: 800 },
    );
  });
});

describe('names', () => {
  const name = fc
    .string({
      unit: fc.constantFrom(...'abAB é小ก-_ .+,🤖ßΣ'.split(''), 'e\u0301', '한', '\u200b'),
      minLength: 1,
      maxLength: 8,
    })
    .filter((text) => /^[\p{L}\p{N}]/u.test(text) && /[^\s\u200b]$/u.test(text));
  const agents = fc.uniqueArray(name, { minLength: 1, maxLength: 6 }).map((names) =>
    names.map((text, index): RosterAgent => {
      const display = names[(index + 1) % names.length] ?? null;
      return { id: AgentId.parse(`id${index}`), name: text, displayName: display, status: 'active', autoReply: true };
    }),
  );

  it('address their agent by the token that the composer types, whatever word follows', () => {
    fc.assert(
      fc.property(agents, name, (list, next) => {
        const compiled = compileRoster(list);
        for (const agent of list) {
          const content = `@${addressToken(agent, compiled)} ${next}`;
          const [mention] = parseMentions(content, compiled).mentions;
          expect(mention).toMatchObject({ kind: 'address', named: { type: 'agent', agentId: agent.id } });
        }
      }),
      { numRuns: 500 },
    );
  });

  it('may be written in any case, with any of space, hyphen and underscore, composed or not', () => {
    const spelling = fc.tuple(name, fc.array(fc.nat(5), { minLength: 8, maxLength: 8 })).map(([text, picks]) => ({
      text,
      variant: [...text]
        .map((character, index) => {
          const pick = picks[index % picks.length] ?? 0;
          if (/[\s_-]/.test(character)) return [' ', '-', '_'][pick % 3];
          if (pick === 1) return character.toUpperCase();
          if (pick === 2) return character.toLowerCase();
          return pick === 3 ? character.normalize('NFD') : character;
        })
        .join(''),
    }));
    fc.assert(
      fc.property(spelling, ({ text, variant }) => {
        const compiled = rosterOf([{ id: 'one', name: text }]);
        const [mention] = parseMentions(`@${variant}!`, compiled).mentions;
        expect(mention).toMatchObject({ text: `@${variant}`, named: { type: 'agent', agentId: 'one' } });
      }),
      { numRuns: 500 },
    );
  });

  it('types a name where it is free, and ends it with a comma where a longer one begins with it', () => {
    const [alice, please, , , jose, proto] = roster.agents;
    expect([alice, please, jose, proto].map((agent) => agent && addressToken(agent, roster))).toEqual([
      'Alice,',
      'Alice Please',
      'José',
      '__proto__',
    ]);
    expect(parseMentions('@Alice, please', roster).mentions[0]?.named).toEqual({ type: 'agent', agentId: 'alice' });
  });

  it('types the id where a name belongs to somebody else', () => {
    const taken = rosterOf([
      { id: 'ada', name: 'Grace' },
      { id: 'grace', name: 'Grace' },
      { id: 'x', name: 'all' },
    ]);
    expect(taken.agents.map((agent) => addressToken(agent, taken))).toEqual(['ada', 'Grace', 'x']);
  });
});

describe('a megabyte of anything', () => {
  const shapes = [
    ...['@', '＠', '@a', '@alice ', '@alice/', '@alice@', '@x-', '@Alice Please', '@e\u0301', '@小明'],
    ...['`', '`@`', '``@`', '`\n', '\\`', '```\n', '~~~\n', '~~~@\n', '~', '```@\n', '> @\n', '- @\n'],
    ...[
      '<!--',
      '<!--@',
      '<!-- @ -->',
      '-->',
      '<!-->',
      '<!--\n',
      '<world>',
      '<world>TO:',
      '<world> @',
      '< ',
      '</world>',
    ],
    ...[
      '<world>STOP</world>',
      '<world>TO: alice,,,</world>@',
      '*',
      '_',
      '*@',
      '** ',
      'hey ',
      'hey, @',
      ' and ',
      '@alice and ',
    ],
    ...['\u200b', '\u200b@', '\u0301', '\u0315\u0316', '@\u0315\u0316', '9', '9.', '\n   ', '\r', '\r\n', ' ', '\t@'],
    ...['://', 'a://', 'www.', 'http://x ', 'a', 'a@', 'aA', '👍', '\ud83d', '@all ', '@human, ', ',@', '@,,@'],
  ];

  /** Some hundred milliseconds at the very most; a walk that starts again at every character takes minutes. */
  const BOUND_MS = 3000;
  const timeOf = (text: string): number => {
    const started = performance.now();
    parseMentions(text, roster);
    return performance.now() - started;
  };

  for (const shape of shapes) {
    it(`is read in one walk: ${JSON.stringify(shape)}`, () => {
      const body = shape.repeat(Math.floor(120_000 / shape.length));
      expect(timeOf(body)).toBeLessThan(BOUND_MS);
      expect(timeOf(`-->@alice \`@ ${body} <!--@alice \`@ <world>TO: alice`)).toBeLessThan(BOUND_MS);
    });
  }

  it('is read in full length too', () => {
    for (const shape of ['@', '`', '<!--', '<world>', '@alice ', '\u200b@']) {
      expect(timeOf(shape.repeat(Math.floor(1_000_000 / shape.length)))).toBeLessThan(BOUND_MS);
    }
  });

  it('is read in one walk where every at-sign might go on with a row that began far before', () => {
    expect(timeOf(`@alice${','.repeat(250_000)}${'@,'.repeat(125_000)}`)).toBeLessThan(BOUND_MS);
    expect(timeOf(`@alice${' and'.repeat(60_000)}${' x@'.repeat(80_000)}`)).toBeLessThan(BOUND_MS);
  });

  it('is routed in time when it is nothing but unknown names', () => {
    const crowd = rosterOf(Array.from({ length: 1000 }, (_, i) => ({ id: `worker-${i}`, name: `Worker Number ${i}` })));
    const content = Array.from({ length: 100_000 }, (_, i) => `@w${i}`).join(' ');
    const started = performance.now();
    const settings = { mainAgent: null, humanMentions: 'line', agentBroadcasts: false } as const;
    const { ignored } = route({ content, sender: senderOf('human'), roster: crowd, settings });
    expect(ignored).toHaveLength(100_000);
    expect(performance.now() - started).toBeLessThan(BOUND_MS);
  });
});
