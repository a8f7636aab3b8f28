import { describe, expect, it } from 'vitest';
import { compileRoster } from '../../../core/world/mentions.ts';
import { agent } from '../testing/fixtures.ts';
import { complete, queryAt, suggestionsFor } from './completion.ts';
import { segmentsOf } from './segments.ts';

const agents = [
  agent('planner'),
  agent('writer'),
  agent('copy-writer', { name: 'Copy Writer' }),
  agent('critic', { status: 'inactive' }),
];
const roster = compileRoster(agents);
const keys = (typed: string): string[] => {
  const query = queryAt(typed, typed.length);
  return query === null ? [] : suggestionsFor(query, agents, roster).map(({ key }) => key);
};

describe('completion', () => {
  const open: readonly [typed: string, keys: string[]][] = [
    ['@wr', ['writer', 'copy-writer']],
    ['hello @PLA', ['planner']],
    ['@copy w', ['copy-writer']],
    ['@', ['planner', 'writer', 'copy-writer', 'critic', '@all']],
    ['请@wri', ['writer', 'copy-writer']],
    ['@a', ['@all']],
  ];
  for (const [typed, expected] of open) {
    it(`offers ${expected.join(', ')} for ${JSON.stringify(typed)}`, () => expect(keys(typed)).toEqual(expected));
  }

  const closed = [
    'mail me at x@wr',
    'a\\@wr',
    '@@wr',
    '@writer, and',
    '@\nwr',
    'no at-sign',
    '@zzz',
    '@planner',
    'ask @Copy Writer ',
  ];
  for (const typed of closed) it(`stays shut for ${JSON.stringify(typed)}`, () => expect(keys(typed)).toEqual([]));

  it('puts the name in, a space behind it and the caret there', () => {
    const text = 'ask @wr about it';
    const query = queryAt(text, 7);
    const [writer] = query ? suggestionsFor(query, agents, roster) : [];
    if (!query || !writer) throw new Error('nothing was offered');
    const done = complete(text, 7, query, writer);
    expect([done.text, done.text.slice(0, done.caret)]).toEqual(['ask @Writer about it', 'ask @Writer ']);
  });

  it('what it puts in addresses the agent that was picked', () => {
    for (const one of agents.filter(({ status }) => status === 'active')) {
      const typed = one.id.slice(0, -1);
      const query = { start: 0, typed };
      const [suggestion] = suggestionsFor(query, agents, roster);
      if (!suggestion) throw new Error('nothing was offered');
      const { text } = complete(`@${typed}`, typed.length + 1, query, suggestion);
      expect(segmentsOf(`${text}hello`, roster, false)[0]).toMatchObject({ kind: 'address', agentId: one.id });
    }
  });
});

describe('highlighting', () => {
  it('tells addresses, references, unknown and muted names apart', () => {
    const kinds = (text: string, anywhere: boolean): string[] =>
      segmentsOf(text, roster, anywhere).map(({ kind }) => kind);
    expect(kinds('@writer see @planner', false)).toEqual(['address', 'text', 'reference']);
    expect(kinds('see @planner', true)).toEqual(['text', 'address']);
    expect(kinds('@nobody and @critic', false)).toEqual(['unknown', 'text', 'inactive']);
    expect(kinds('`@writer`\n> @planner', true)).toEqual(['text']);
  });

  it('loses no character of the draft', () => {
    const text = '@writer, @planner: **@all** x@y.z\n\n```\n@writer\n```\n<world>TO: writer</world> end';
    expect(
      segmentsOf(text, roster, true)
        .map((segment) => segment.text)
        .join(''),
    ).toBe(text);
  });
});
