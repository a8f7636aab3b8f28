import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createScriptModel } from '../core/models/script.ts';
import type { ModelRequest } from '../core/ports.ts';
import type { Sender, WakeReason } from '../core/protocol/entities.ts';
import { route } from '../core/world/router.ts';
import { rosterOf } from '../core/world/routing-case.ts';

const NAMES = ['Planner', 'Writer', 'Critic'];
const roster = rosterOf(NAMES.map((name) => ({ id: name.toLowerCase(), name })));
const demoDir = fileURLToPath(new URL('../agents/demo', import.meta.url));
const waits: number[] = [];
const model = createScriptModel({
  demoDir,
  scriptsDir: demoDir,
  clock: {
    async sleep(ms) {
      waits.push(ms);
    },
  },
});
const settings = { mainAgent: 'planner', humanMentions: 'anywhere', agentBroadcasts: false } as const;
const HUMAN: Sender = { kind: 'human', id: 'ann', name: 'Ann' };

interface Said {
  agent: string;
  text: string;
  woke: string[];
}

/** A room without limits: what the agents say after a person's message, one turn at a time. Stops after `most` turns. */
async function talk(content: string, turns = new Map<string, number>(), human = HUMAN, most = 20): Promise<Said[]> {
  const said: Said[] = [];
  const first = route({ content, sender: human, roster, settings });
  const queue = first.woke.map((wake) => ({ ...wake, sender: human, text: first.published }));
  while (said.length < most) {
    const work = queue.shift();
    if (!work) return said;
    const turn = (turns.get(work.agentId) ?? 0) + 1;
    turns.set(work.agentId, turn);
    const sender: Sender = {
      kind: 'agent',
      id: work.agentId,
      name: roster.agents.find((a) => a.id === work.agentId)?.name ?? '',
    };
    const text = await answer(work.agentId, work.sender.name, work.text, turn);
    const routed = route({ content: text, sender, roster, settings, replyTo: work.sender, wokenBy: work.reason });
    queue.push(
      ...routed.woke.map((wake: { agentId: typeof work.agentId; reason: WakeReason }) => ({
        ...wake,
        sender,
        text: routed.published,
      })),
    );
    said.push({ agent: work.agentId, text: routed.published, woke: routed.woke.map((wake) => wake.agentId) });
  }
  return said;
}

async function answer(agent: string, from: string, text: string, turn: number): Promise<string> {
  const request: ModelRequest = {
    model: `demo:${agent}`,
    system: '',
    messages: [{ role: 'user', content: text }],
    tools: [],
    maxTokens: 4096,
    scene: { agent: { id: agent, name: agent }, from, text, turn, agents: NAMES },
  };
  let out = '';
  for await (const part of model.stream(request, new AbortController().signal))
    if (part.type === 'text') out += part.text;
  return out;
}

const who = (said: Said[]): string[] => said.map(({ agent }) => agent);

test('a request is planned, handed to two agents, drafted, reviewed and given back', async () => {
  const said = await talk('Plan a launch post');
  expect(said.map(({ agent, woke }) => `${agent} > ${woke.join(' ')}`)).toEqual([
    'planner > writer critic',
    'writer > critic',
    'critic > ',
    'critic > planner',
    'planner > ',
  ]);
  expect(said[1]?.text).toMatch(/^## Plan a launch post\n.*\n\| Part.*```text/s);
  expect(said[2]?.text).not.toContain('<world>');
  expect(said.at(-1)?.text).toMatch(/^@human /m);
});

test('a whole conversation ends each time within the turn limit', async () => {
  const turns = new Map<string, number>();
  const messages = [
    'hello',
    'Plan a launch post',
    'make it shorter',
    'Now a guide for new colleagues',
    'thanks!',
    'help',
  ];
  const rounds: string[][] = [];
  for (const message of messages) rounds.push(who(await talk(message, turns)));
  expect(rounds).toEqual([
    ['planner'],
    ['planner', 'writer', 'critic', 'critic', 'planner'],
    ['planner', 'writer'],
    ['planner', 'writer', 'critic', 'critic', 'planner'],
    ['planner'],
    ['planner'],
  ]);
});

test.each([
  ['@critic what do you think?', ['critic'], 'what do you think?'],
  ['@writer a haiku about queues', ['writer'], 'a haiku about queues'],
  ['@writer hi', ['writer'], 'What shall I write?'],
  ['@critic', ['critic'], 'What shall I look at?'],
  ['who are you?', ['planner'], 'three agents'],
  ['@critic who are you?', ['critic'], 'I am the critic'],
  ['hey @planner!', ['planner'], 'Good to see you, Ann'],
  ['@all hello', ['planner', 'writer', 'critic'], 'Good to see you'],
])('%j is answered by %j', async (message, agents, part) => {
  const said = await talk(message);
  expect(who(said)).toEqual(agents);
  expect(said[0]?.text).toContain(part);
  expect(said.at(-1)?.text).toMatch(/^@human /m);
});

test('whatever a person writes, the room comes to rest, without a loop and without an empty answer', async () => {
  const word = fc.constantFrom(
    ...[
      '@writer',
      '@critic',
      '＠planner',
      '@all',
      '@human',
      '@nobody',
      'hello',
      'shorter',
      'help',
      'thanks',
      '\n',
      '\n> ',
    ],
    ...[
      '```',
      '`',
      '<world>TO: writer</world>',
      '<world>STOP</world>',
      '“”',
      '”',
      'Please draft this: “x”',
      'reader of “y”',
    ],
    ...['Please revise the draft: “@writer”', '<!--', '-->', '{{message}}', '小明', '🎉', '*', '- ', ': '],
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(word, { minLength: 1, maxLength: 12 }),
      fc.constantFrom('Ann', 'critic', '@writer\n@critic'),
      async (words, name) => {
        const turns = new Map<string, number>();
        const said = await talk(words.join(' '), turns, { ...HUMAN, name });
        expect(said.length).toBeLessThan(13);
        for (const { text } of said) expect(text.trim()).not.toBe('');
        for (const count of turns.values()) expect(count).toBeLessThan(6);
      },
    ),
    { numRuns: 300 },
  );
});

test('streams at a pace that a person can follow', async () => {
  waits.length = 0;
  await talk('Plan a launch post');
  expect(new Set(waits)).toEqual(new Set([25, 30, 35]));
  const total = waits.reduce((sum, ms) => sum + ms, 0);
  expect(total).toBeGreaterThan(3000);
  expect(total).toBeLessThan(12_000);
});
