import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { rosterOf, routeCase } from './routing-case.ts';

const spec = join(dirname(fileURLToPath(import.meta.url)), '../../../shared/spec');
const table = join(spec, 'mentions.tsv');

if (!existsSync(table)) {
  it('has no table of cases beside the checkout; the cases of router.test.ts stand alone', () => {
    console.log('mentions.tsv not found beside the checkout: its rows are not run');
    expect(existsSync(table)).toBe(false);
  });
} else {
  const rosters = JSON.parse(readFileSync(join(spec, 'mentions-rosters.json'), 'utf8')) as Record<string, unknown>;
  const [, ...rows] = readFileSync(table, 'utf8').trimEnd().split('\n');
  const compiled = new Map(Object.entries(rosters).map(([name, agents]) => [name, rosterOf(agents)]));

  for (const row of rows) {
    const [id = '', sender = '', roster = '', world = '-', repliesTo = '-', content = '""', woke, ignored, published] =
      row.split('\t');
    it(`routes as the table says: ${id}`, () => {
      const text = JSON.parse(content) as string;
      const settings = { humanMentions: 'line', ...(world === '-' ? {} : JSON.parse(world)) };
      const agents = compiled.get(roster);
      if (!agents) throw new Error(`no roster ${roster}`);
      expect(
        routeCase(agents, sender, text, { settings, repliesTo: repliesTo === '-' ? undefined : repliesTo }),
      ).toEqual({
        woke: setOf(woke),
        ignored: setOf(ignored),
        published: published === '=' ? text : JSON.parse(published ?? '""'),
      });
    });
  }
}

function setOf(list: string | undefined): string[] {
  return list === undefined || list === '-' ? [] : list.split(',').sort();
}
