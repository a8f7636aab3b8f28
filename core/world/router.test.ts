import { describe, expect, it } from 'vitest';
import type { CompiledRoster } from './mentions.ts';
import { route } from './router.ts';
import { type CaseOptions, rosterOf, routeCase, senderOf } from './routing-case.ts';

const plain = rosterOf([
  { id: 'alice', name: 'Alice' },
  { id: 'bob', name: 'Bob' },
  { id: 'carol', name: 'Carol' },
]);
const odd = rosterOf([
  { id: 'alice', name: 'Alice' },
  { id: 'alice-please', name: 'Alice Please' },
  { id: 'ada', name: 'Ada', displayName: 'Dr. Lovelace' },
  { id: 'c-expert', name: 'C++' },
  { id: 'smith', name: 'Smith, John' },
  { id: '小明', name: '小明' },
  { id: 'リーダー', name: 'リーダー' },
  { id: '민수', name: '민수' },
  { id: 'สมชาย', name: 'สมชาย' },
  { id: 'a-b', name: 'a b' },
  { id: 'node', name: 'Node' },
  { id: 'node-js', name: 'Node.js' },
  { id: 'robot', name: '🤖' },
  { id: 'flag', name: '🏳️‍🌈 Flag' },
  { id: 'σοφοσ', name: 'ΣΟΦΟΣ' },
  { id: 'strasse', name: 'Straße' },
]);
const idle = rosterOf([
  { id: 'alice', name: 'Alice' },
  { id: 'bob', name: 'Bob', status: 'inactive' },
  { id: 'carol', name: 'Carol', autoReply: false },
]);

/** Sender, content, woke, ignored; then the published text where it differs, options, roster. */
type Row = [
  sender: string,
  content: string,
  woke: string,
  ignored: string,
  more?: CaseOptions & { published?: string; roster?: CompiledRoster },
];

const ALL = 'alice:broadcast bob:broadcast carol:broadcast';
/** Where plain text would wake everybody, a missing main agent shows that nothing was mentioned. */
const NOBODY = { roster: odd, settings: { mainAgent: 'nope' } };
const TAG = { published: 'hi' };
const ODD = { roster: odd };
const toAlice = { repliesTo: 'alice' };
const ANYWHERE: CaseOptions = { settings: { humanMentions: 'anywhere' } };

const tables: Record<string, Row[]> = {
  'what may stand before an address': [
    ['human', 'a\r@bob go', 'bob:address', ''],
    ['human', '* **@alice** do', 'alice:address', ''],
    ['human', '+ @alice do', 'alice:address', ''],
    ['human', '1234567890123. @alice do', 'alice:address', ''],
    ['human', '1) hi, **@alice**: look', 'alice:address', ''],
    ['human', '- - @alice', '', '@alice:reference'],
    ['human', '1.@alice go', '', '@alice:reference'],
    ['human', '**hey @alice** go', 'alice:address', ''],
    ['human', '**Hey,** @alice go', 'alice:address', ''],
    ['human', '~~__dear__~~ _@alice_ go', 'alice:address', ''],
    ['human', '***@alice*** go', 'alice:address', ''],
    ['human', 'to，@alice go', 'alice:address', ''],
    ['human', 'hey hey @alice', '', '@alice:reference'],
    ['human', 'heyo @alice', '', '@alice:reference'],
    ['human', 'to: @alice', '', '@alice:reference'],
    ['human', '~@alice~', '', '@alice:reference'],
    ['human', '<!-- a -->- <!-- b -->hi<!-- c -->, @alice go', '', '@alice:reference'],
    ['human', '<!-- a -->- <!-- b -->hi, <!-- c -->@alice go', 'alice:address', ''],
    ['human', '\u3000@alice go', 'alice:address', ''],
    ['human', '\ufeff@alice go', 'alice:address', ''],
  ],
  'a row of addresses': [
    ['human', '@alice/@bob go', 'alice:address bob:address', ''],
    ['human', '@alice，@bob、@carol go', 'alice:address bob:address carol:address', ''],
    ['human', '@alice AND @bob', 'alice:address bob:address', ''],
    ['human', '@alice andy @bob', 'alice:address', '@bob:reference'],
    ['human', '@alice <!-- x --> @bob', 'alice:address bob:address', ''],
    ['human', '@alice `x` @bob', 'alice:address', '@bob:reference'],
    ['human', '@world, @alice: go', 'alice:address', '@world:reference'],
    ['human', '@nobody and @alice: go', 'alice:address', '@nobody:unknown'],
    ['human', '@alice, @@x, @bob go', 'alice:address', '@bob:reference'],
    ['human', "@alice's and @bob", '', '@bob:reference'],
    ['human', '@alice - @bob', 'alice:address', '@bob:reference'],
    ['human', '@alice\n, @bob', 'alice:address', '@bob:reference'],
    ['human', 'see @alice/@bob', '', '@alice:reference @bob:reference'],
    ['human', '@alice @all go', 'alice:address bob:all carol:all', ''],
    ['human', '@all, @alice go', 'alice:all bob:all carol:all', '@alice:duplicate'],
    ['human', '@all @everyone go', 'alice:all bob:all carol:all', '@everyone:duplicate'],
    ['human', '@human, @user, @you', '', ''],
    ['human', '@alice @nope, @nope', 'alice:address', '@nope:unknown'],
  ],
  code: [
    ['human', '1. ~~~\n@alice\n~~~\n@bob hi', 'bob:address', '@alice:code'],
    ['human', '<!-- x --> ```\n@alice\n```\n@bob hi', 'bob:address', '@alice:code'],
    ['human', '```a`b\n@alice\n```', 'alice:address', ''],
    ['human', '~~~a`b\n@alice\n~~~', ALL, '@alice:code'],
    ['human', '```\n@alice\n~~~\n````  \n@bob', 'bob:address', '@alice:code'],
    ['human', '```\n@alice\n``` x\n- ```\n@bob', ALL, '@alice:code @bob:code'],
    ['human', '````\n@alice\n```\n@bob', ALL, '@alice:code @bob:code'],
    ['human', '```\r@alice\r```\r@bob', 'bob:address', '@alice:code'],
    ['human', 'x ```\n@alice', 'alice:address', ''],
    ['human', '`` ` @alice `` @bob', '', '@bob:reference @alice:code'],
    ['human', '``@alice`', '', '@alice:reference'],
    ['human', '\\`@alice` x`', '', '@alice:reference'],
    ['human', '`\\`@alice', '', '@alice:reference'],
    ['human', 'a `b\n@alice` c', 'alice:address', ''],
    ['human', '`@all @nobody @human @alice() x@bob`', ALL, ''],
    ['human', '`@alice/@bob`', ALL, '@alice:code @bob:code'],
    ['human', '`https://x.org`/@alice', ALL, ''],
    ['human', '`http://a`:@alice', '', '@alice:reference'],
  ],
  quotes: [
    ['human', '  - > @alice\n@bob', 'bob:address', '@alice:quote'],
    ['human', '-> @alice', '', '@alice:reference'],
    ['human', '> ```\n@alice', 'alice:address', ''],
    ['human', '> @nobody @human x@alice', ALL, ''],
    ['human', '<!-- --> > @alice', ALL, '@alice:quote'],
    ['human', '```\n> @alice\n```', ALL, '@alice:code'],
    ['human', '> <!-- @alice -->', ALL, ''],
  ],
  comments: [
    ['human', '<!-- a\n@alice\n--> @bob hi', 'bob:address', ''],
    ['human', 'text <!-- a\n--> @bob', '', '@bob:reference'],
    ['human', '<!-- @alice', '', '@alice:reference'],
    ['human', '<!-->@alice', 'alice:address', ''],
    ['human', '<!-- ``` -->\n@alice', 'alice:address', ''],
    ['human', '<!-- ` --> @alice `', 'alice:address', ''],
    ['human', '`<!--` @alice `-->`', '', '@alice:reference'],
    ['human', '```\n<!--\n```\n@alice -->', 'alice:address', ''],
    ['human', 'x<!-- -->@alice', '', '@alice:reference'],
    ['human', '<!-- > -->@alice', 'alice:address', ''],
  ],
  'what is no mention': [
    ['human', 'WWW.x.org/@alice ok', ALL, ''],
    ['human', 'see www.x@alice, www @bob', '', '@bob:reference'],
    ['human', 'a+b.c-d://@alice<@bob', '', '@bob:reference'],
    ['human', 'x://y?to=@alice www.x.org?@bob', ALL, ''],
    ['human', 'x://y ?to=@alice awww.x.org?@bob', '', '@alice:reference @bob:reference'],
    ['human', '\\@alice \\\\@bob', ALL, ''],
    ['human', '@alice://x', ALL, ''],
    ['human', '://@alice', ALL, ''],
    ['human', 'é@alice 7@alice ²@alice', ALL, ''],
    ['human', 'カ@alice 가@bob ก็@carol', '', '@alice:reference @bob:reference @carol:reference'],
    ['human', '/@alice', ALL, ''],
    ['human', '＠＠alice @＠alice', ALL, ''],
    ['human', '@alice＠host', ALL, ''],
    ['human', '@alice/2 @bob.é', ALL, ''],
    ['human', '@alice. @bob/ go', 'alice:address', '@bob:reference'],
    ['human', '@alice’ @bob', 'alice:address', '@bob:reference'],
    ['human', '@alice （x）', 'alice:address', ''],
    ['human', '@alice (x)', 'alice:address', ''],
    ['human', "@alice'90 @bob'é", 'alice:address', ''],
    ['human', '@ @- @_ @! @', ALL, ''],
    ['human', "@Alice Please's idea", '', 'nope:unknown', NOBODY],
  ],
  names: [
    ['human', '@C++ help', 'c-expert:address', '', ODD],
    ['human', '@C++x help', '', '@C:unknown', ODD],
    ['human', '@dr._lovelace: hi', 'ada:address', '', ODD],
    ['human', '@Dr. Lovelace’s', '', 'nope:unknown', NOBODY],
    ['human', '@Smith, John and @Ada', 'smith:address ada:address', '', ODD],
    ['human', '@🤖 hi', 'robot:address', '', ODD],
    ['human', '@🤖hi', '', 'nope:unknown', NOBODY],
    ['human', '@🏳🌈_flag hi', 'flag:address', '', ODD],
    ['human', '@小明你好', '小明:address', '', ODD],
    ['human', '@小明123', '小明:address', '', ODD],
    ['human', '@リーダーさん', 'リーダー:address', '', ODD],
    ['human', '@민수야', '민수:address', '', ODD],
    ['human', '@สมชายครับ', 'สมชาย:address', '', ODD],
    ['human', '@\u1106\u1175\u11ab\u1109\u116e hi', '민수:address', '', ODD],
    ['human', '@alice你好', '', '@alice你好:unknown', ODD],
    ['human', '@a_b go', 'a-b:address', '', ODD],
    ['human', '@a\u00a0b go', 'a-b:address', '', ODD],
    ['human', '@a  b go', '', '@a:unknown', ODD],
    ['human', '@a\nb go', '', '@a:unknown', ODD],
    ['human', '@alice-\u200bplease go', 'alice-please:address', '', ODD],
    ['human', '@alice--bob', 'alice:address', '', ODD],
    ['human', '@alice_x', '', '@alice_x:unknown', ODD],
    ['human', '@alice_ x', 'alice:address', '', ODD],
    ['human', '@alice\u0301', '', '@alice\u0301:unknown', ODD],
    ['human', '@Node.js rocks', 'node-js:address', '', ODD],
    ['human', '@Node.ts rocks', '', 'nope:unknown', NOBODY],
    ['human', '@Node. Then', 'node:address', '', ODD],
    ['human', '@σοφος γεια', 'σοφοσ:address', '', ODD],
    ['human', '@STRASSE go', 'strasse:address', '', ODD],
    ['human', '@x--y-_z', '', '@x:unknown', ODD],
    ['human', '@all-hands', '', '@all-hands:unknown'],
  ],
  'a person or the world': [
    ['human', '\u200b', '', '', { published: '' }],
    ['human', 'the @media rule', ALL, '@media:unknown'],
    ['human', 'the @media rule', '', '@media:unknown', ANYWHERE],
    ['human', 'tell @all', 'alice:all bob:all carol:all', '', ANYWHERE],
    ['human', 'hm @world and @alice', 'alice:address', '@world:reference', ANYWHERE],
    ['human', '> @alice `@bob` @carol', ALL, '@alice:quote @bob:quote @carol:quote', ANYWHERE],
    ['world', 'tell @alice', '', '@alice:reference', ANYWHERE],
    ['world', '@all go', 'alice:all bob:all carol:all', ''],
    ['human', 'ask @bob', '', '@bob:reference', { roster: idle }],
    ['human', 'tell @human', ALL, '@human:reference'],
    ['human', '@human and @bob', '', '@bob:inactive', { roster: idle }],
    ['human', '@all go', 'alice:all carol:all', '', { roster: idle }],
    ['human', 'hi', 'bob:main_agent', '', { settings: { mainAgent: 'bob' } }],
    ['human', 'hi', '', 'gone:unknown', { settings: { mainAgent: 'gone' } }],
    ['tool', '@alice <world>STOP</world>', '', ''],
    ['system', '  ', '', ''],
  ],
  'an agent': [
    ['agent:bob', '@alice: 👍🏽!', '', '@alice:empty_address', toAlice],
    ['agent:bob', '@alice and @carol 1️⃣ 🇩🇪 ❤️', '', '@alice:empty_address @carol:empty_address', toAlice],
    ['agent:bob', '@alice <!-- do it -->', '', '@alice:empty_address', toAlice],
    ['agent:bob', '👍 @alice', '', '@alice:reference', toAlice],
    ['agent:bob', '👍', '', '', toAlice],
    ['agent:bob', '@bob 👍', '', '@bob:self', toAlice],
    ['agent:bob', '@all 👍', '', '@all:broadcast_refused', toAlice],
    ['agent:bob', '@nope 👍', '', '@nope:unknown', toAlice],
    ['agent:bob', '@alice 5', 'alice:address', '', toAlice],
    ['agent:bob', '@alice `x`', 'alice:address', '', toAlice],
    ['agent:bob', 'Hi @alice', 'alice:address', '', toAlice],
    ['agent:bob', '@bob @alice go', 'alice:address', '@bob:self', toAlice],
    ['agent:bob', '@everyone go', 'alice:all carol:all', '', { settings: { agentBroadcasts: true } }],
    ['agent:bob', 'sure', '', '', { ...toAlice, wokenBy: 'auto_reply' }],
    ['agent:bob', 'sure', 'alice:auto_reply', '', { ...toAlice, wokenBy: 'address' }],
    ['agent:alice', 'sure', '', 'bob:inactive', { repliesTo: 'bob', roster: idle }],
    ['agent:alice', 'sure', '', 'gone:unknown', { repliesTo: 'gone' }],
    ['agent:bob', 'sure', '', '', { repliesTo: 'bob' }],
    ['agent:bob', 'as @human said', 'alice:auto_reply', '@human:reference', toAlice],
    ['agent:bob', '@world hi', 'alice:auto_reply', '@world:reference', toAlice],
    ['agent:bob', 'ask @alice', '', '@alice:reference', ANYWHERE],
    ['agent:bob', 'as @bob said', '', '@bob:reference'],
  ],
  'control tags': [
    ['human', '<world>TO: alice</world>hi', 'alice:world_tag', '', TAG],
    ['human', '< WORLD >\tTo : @Alice ，bob\t</ world\t>  \thi', 'alice:world_tag bob:world_tag', '', TAG],
    ['human', 'hi\n<world>to: all</world>', 'alice:world_tag bob:world_tag carol:world_tag', '', TAG],
    ['human', '<world>TO: Smith, John, ada</world>hi', 'smith:world_tag ada:world_tag', '', { ...TAG, ...ODD }],
    ['human', '<world>TO: dr. lovelace</world>hi', 'ada:world_tag', '', { ...TAG, ...ODD }],
    ['human', '<world>TO: alcie, @x y</world>hi', '', 'alcie:unknown @x y:unknown', TAG],
    ['human', '<world>TO: alice, Alice</world>hi', 'alice:world_tag', 'Alice:duplicate', TAG],
    ['human', '<world>TO: bob</world>hi', '', 'bob:inactive', { ...TAG, roster: idle }],
    ['human', '<world>TO: human</world>hi', '', '', TAG],
    ['human', '<world>TO: , @ ,</world>hi', ALL, '', TAG],
    ['human', '<world>TO: alice</world><world>TO: bob</world><world>TO:</world>hi', 'bob:world_tag', '', TAG],
    [
      'human',
      '<world>TO: alice</world>ask @bob',
      'alice:world_tag',
      '@bob:reference',
      { ...ANYWHERE, published: 'ask @bob' },
    ],
    ['agent:bob', '<world>TO: bob</world>hi', '', 'bob:self', { ...TAG, ...toAlice }],
    ['agent:bob', '<world>TO: all</world>hi', '', 'all:broadcast_refused', { ...TAG, ...toAlice }],
    ['agent:bob', '<world>TO: alice</world>👍', '', 'alice:empty_address', { ...toAlice, published: '👍' }],
    ['agent:bob', '<world>TO: alice</world>', '', '', { ...toAlice, published: '' }],
    ['human', '<world>PASS</world>@alice @bob go', '', '@alice:stopped @bob:stopped', { published: '@alice @bob go' }],
    [
      'agent:bob',
      '<world>STOP</world>@bob @alice @nope 👍',
      '',
      '@bob:self @alice:stopped @nope:unknown',
      { published: '@bob @alice @nope 👍' },
    ],
    ['human', '@al<world>STOP</world>ice', '', '@alice:stopped', { published: '@alice' }],
    ['human', '<wor<world>STOP</world>ld>STOP</world> x', '', '', { published: '<world>STOP</world> x' }],
    ['human', '<world>STOP\n</world> x', ALL, ''],
    ['human', '<world>STOP </world> <world> DONE</world>\thi', '', '', TAG],
    ['human', '> <world>STOP</world>', ALL, ''],
    ['human', '<!-- <world>STOP</world> --> x', ALL, ''],
    ['human', '```\n<world>STOP</world>\n```', ALL, ''],
    ['human', '<world>TO: `alice`</world> x', ALL, ''],
    ['human', '<world>TO: <!-- a -->alice</world>hi', 'alice:world_tag', '', TAG],
    ['human', '<world>TO: <!-- \n -->alice</world>hi', ALL, ''],
    ['human', '`<world>TO: a`lice</world> x', ALL, ''],
    ['human', '<world>STOP</world> ', '', '', { published: '' }],
    ['human', 'a <world>FOO</world> <world>STOP</world>  b ', '', '', { published: 'a <world>FOO</world> b' }],
    ['human', '<world>DONE</world>> @alice', '', '@alice:quote', { published: '> @alice' }],
    ['world', '<world>TO: carol</world>hi', 'carol:world_tag', '', TAG],
  ],
};

for (const [area, rows] of Object.entries(tables)) {
  describe(area, () => {
    for (const [sender, content, woke, ignored, more = {}] of rows) {
      it(`${sender}: ${JSON.stringify(content)}`, () => {
        expect(routeCase(more.roster ?? plain, sender, content, more)).toEqual({
          woke: sorted(woke),
          ignored: sorted(ignored),
          published: more.published ?? content,
        });
      });
    }
  });
}

function sorted(list: string): string[] {
  return list === '' ? [] : (list.match(/.+?:[a-z_]+(?= |$)/g) ?? []).map((entry) => entry.trim()).sort();
}

describe('the receipt', () => {
  const settings = { mainAgent: null, humanMentions: 'line', agentBroadcasts: false } as const;
  const say = (content: string, sender = 'human', roster = plain) =>
    route({ content, sender: senderOf(sender), roster, settings });

  it('follows the order of the text, and of the world for broadcasts', () => {
    expect(say('@carol\n@alice go').woke.map(({ agentId }) => agentId)).toEqual(['carol', 'alice']);
    expect(say('@carol @all go').woke.map(({ agentId }) => agentId)).toEqual(['carol', 'alice', 'bob']);
    const { ignored } = say('as @bob and `@alice` say\n> @carol\n@nope <world>TO: zzz</world>');
    expect(ignored.map(({ text }) => text)).toEqual(['zzz', '@bob', '@alice', '@carol', '@nope']);
  });

  it('lists what was written, as it was written, each reason once', () => {
    expect(say('hm ＠ALICE, @alice, @al\u200bice.').ignored.map(({ text }) => text)).toEqual([
      '＠ALICE',
      '@alice',
      '@al\u200bice',
    ]);
  });

  it('names the agent that was meant', () => {
    expect(say('hm `@Alice` @nope').ignored).toMatchObject([{ agentId: 'alice', reason: 'code' }, { text: '@nope' }]);
    expect(say('@bob x', 'human', idle).ignored).toEqual([{ text: '@bob', reason: 'inactive', agentId: 'bob' }]);
  });

  it('suggests the closest known agent for an unknown name, wherever it stands', () => {
    const suggestion = (content: string, roster = plain) => say(content, 'human', roster).ignored[0]?.suggestion;
    expect(suggestion('@alcie go')).toBe('alice');
    expect(suggestion('hm @crol')).toBe('carol');
    expect(suggestion('<world>TO: bbo</world>x')).toBe('bob');
    expect(suggestion('@Alice_Pleas x', odd)).toBe('alice-please');
    expect(suggestion('@lovelace x', odd)).toBeUndefined();
    expect(suggestion('@strass x', odd)).toBe('strasse');
    expect(
      suggestion(
        '@cab x',
        rosterOf([
          { id: 'car', name: 'Car' },
          { id: 'cat', name: 'Cat' },
        ]),
      ),
    ).toBe('car');
    expect(suggestion('@zebra x')).toBeUndefined();
    expect(suggestion(`@${'x'.repeat(100_000)} x`)).toBeUndefined();
  });

  it('tells the person of an address, not of a reference', () => {
    expect(say('@human done', 'agent:bob').toHuman).toBe(true);
    expect(say('@you 👍', 'agent:bob').toHuman).toBe(true);
    expect(say('<world>TO: user</world>x', 'agent:bob').toHuman).toBe(true);
    expect(say('as @human said', 'agent:bob').toHuman).toBe(false);
  });

  it('says which stop tag was used', () => {
    expect(say('<world>pass</world>', 'agent:bob')).toMatchObject({ stop: 'PASS', published: '' });
    expect(say('x <world>Done</world>', 'agent:bob').stop).toBe('DONE');
    expect(say('x')).not.toHaveProperty('stop');
  });
});
