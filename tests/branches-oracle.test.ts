import { afterAll, beforeAll, expect, test } from 'vitest';
import { OWNER } from '../core/index.ts';
import type { ModelRequest } from '../core/ports.ts';
import type { Message } from '../core/protocol/entities.ts';
import { type Random, seeded } from './chaos/random.ts';
import { openRoom, type Room } from './support/room.ts';

const ROUNDS = 8;
const STEPS = 30;

/** A chat as a plain tree: what was said points at what was said before it. */
interface Node {
  id: string;
  parent: string | null;
  kind: 'human' | 'agent';
  text: string;
  branch: number;
}

let room: Room;
/** The agent answers with the words that it sees of others, so that its window is checked too. */
const answer = (request: ModelRequest) => {
  const words = request.messages.flatMap((message) =>
    message.role === 'user' ? (message.content.replace(/<your-turn.*/s, '').match(/\bh\d+\b/g) ?? []) : [],
  );
  return `heard ${words.join(' ')}`;
};
beforeAll(async () => {
  room = await openRoom({ agents: ['A'], answer });
});
afterAll(() => room.close());

class Oracle {
  readonly nodes = new Map<string, Node>();
  readonly heads: (string | null)[] = [null];
  active = 0;
  get head(): string | null {
    return this.heads[this.active] ?? null;
  }
  path(head = this.head): Node[] {
    const path: Node[] = [];
    for (let node = this.get(head); node; node = this.get(node.parent)) path.unshift(node);
    return path;
  }
  get(id: string | null): Node | undefined {
    return id === null ? undefined : this.nodes.get(id);
  }
  add(message: Pick<Message, 'id'>, kind: Node['kind'], text: string): void {
    this.nodes.set(message.id, { id: message.id, parent: this.head, kind, text, branch: this.active });
    this.heads[this.active] = message.id;
  }
  forkAfter(id: string | null): void {
    if (this.head === id) return;
    this.active = this.heads.push(id) - 1;
  }
  choose(id: string): void {
    if (this.head === id) return;
    const ending = this.heads.findLastIndex((head, branch) => head === id && branch !== this.active);
    if (ending >= 0) this.active = ending;
    else if (!this.path().some((node) => node.id === id)) this.active = this.get(id)?.branch ?? 0;
  }
  /** What the agent will say when it answers after the active head. */
  reply(): string {
    return `heard ${this.path()
      .filter(({ kind, text }) => kind === 'human' && text !== '')
      .map(({ text }) => text)
      .join(' ')}`;
  }
}

async function readAll(chat: string, limit: number, head?: string): Promise<Message[]> {
  const found: Message[] = [];
  let before: number | null = null;
  do {
    const page = await room.parley.messages(OWNER, room.world, chat, {
      limit,
      ...(before === null ? {} : { before }),
      ...(head === undefined ? {} : { head }),
    });
    found.unshift(...page.messages);
    before = page.next;
  } while (before !== null);
  return found;
}
async function readForward(chat: string, limit: number): Promise<Message[]> {
  const found: Message[] = [];
  for (;;) {
    const { messages } = await room.parley.messages(OWNER, room.world, chat, { limit, after: found.at(-1)?.seq ?? 0 });
    found.push(...messages);
    if (messages.length < limit) return found;
  }
}

async function compare(oracle: Oracle, chat: string, random: Random, label: string): Promise<void> {
  const expected = oracle.path().map(({ id, text }) => [id, text.trim()]);
  const shown = (messages: readonly Message[]) => messages.map(({ id, content }) => [id, content.trim()]);
  const backward = await readAll(chat, random.int(1, 4));
  expect(shown(backward), label).toEqual(expected);
  expect(shown(await readForward(chat, random.int(1, 4))), label).toEqual(expected);
  const seqs = backward.map(({ seq }) => seq);
  expect(seqs, label).toEqual([...new Set(seqs)].sort((a, b) => a - b));
  const heads = (await room.parley.branches(OWNER, room.world, chat)).map(({ headId }) => headId);
  expect(heads, label).toEqual(oracle.heads);
  const other = random.pick(heads);
  if (other !== null) {
    const path = oracle.path(other).map(({ id, text }) => [id, text.trim()]);
    expect(shown(await readAll(chat, random.int(1, 4), other)), label).toEqual(path);
  }
}

async function play(random: Random, label: string): Promise<void> {
  const { world } = room;
  const chat = (await room.parley.createChat(OWNER, world, {})).id;
  const oracle = new Oracle();
  const settle = async () => {
    const text = oracle.reply();
    expect(await room.parley.whenIdle(OWNER, world, chat, 20_000)).toBe(true);
    const { messages } = await room.parley.messages(OWNER, world, chat, { limit: 1 });
    const [said] = messages;
    if (said?.sender.kind !== 'agent') throw new Error(`${label}: there is no reply`);
    oracle.add(said, 'agent', text);
  };
  for (let step = 0; step < STEPS; step++) {
    const at = `${label}, step ${step}`;
    const node = oracle.nodes.size === 0 ? null : random.pick([...oracle.nodes.values()]);
    const text = `h${step}`;
    const kind = node === null ? 0 : random.int(0, 9);
    if (node === null || kind <= 2) {
      oracle.add((await room.parley.post(OWNER, world, chat, text)).message, 'human', text);
      await settle();
    } else if (kind <= 4 && node.kind === 'human') {
      const { message } = await room.parley.editMessage(OWNER, world, chat, node.id, text);
      oracle.forkAfter(node.parent);
      oracle.add(message, 'human', text);
      await settle();
    } else if (kind <= 6) {
      oracle.forkAfter(node.kind === 'agent' ? node.parent : node.id);
      await room.parley.regenerate(OWNER, world, chat, node.id);
      await settle();
    } else if (kind === 7) {
      const head = random.chance(0.5) ? node.id : (random.pick(oracle.heads) ?? node.id);
      oracle.choose(head);
      expect((await room.parley.patchChat(OWNER, world, chat, { head })).head, at).toBe(oracle.head);
    } else if (kind === 8) {
      await room.parley.deleteMessage(OWNER, world, chat, node.id);
      node.text = '';
    } else {
      const fork = await room.parley.forkChat(OWNER, world, chat, node.id);
      const copies = (await readAll(fork.id, 7)).map(({ content }) => content.trim());
      expect(copies, at).toEqual(oracle.path(node.id).map(({ text: said }) => said.trim()));
    }
    await compare(oracle, chat, random, at);
    if (step === STEPS / 2) await room.reopen();
  }
  await room.reopen();
  await compare(oracle, chat, random, `${label}, after a restart`);
  // Everything that was ever said has one seq of its own, without a gap.
  const seqs = new Set<number>();
  for (const head of oracle.heads) {
    if (head !== null) for (const { seq } of await readAll(chat, 100, head)) seqs.add(seq);
  }
  expect([...seqs].sort((a, b) => a - b)).toEqual(Array.from({ length: oracle.nodes.size }, (_, index) => index + 1));
}

test('posts, edits, regenerates, switches, deletes and forks at random leave the tree that a plain oracle has', {
  timeout: 120_000,
}, async () => {
  const seed = Number(process.env['BRANCH_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`branches: BRANCH_SEED=${seed}`);
  for (let round = 0; round < ROUNDS; round++) await play(seeded(seed + round), `seed ${seed}, round ${round}`);
});
