import type { ModelPart, Tool } from '../../core/ports.ts';
import type { Approval } from '../../core/protocol/entities.ts';
import { type PostedAndIdle, PostedAndIdle as PostedAndIdleSchema } from '../../core/protocol/requests.ts';
import { type Answer, type RealServer, realServer } from '../../server/testing/real-server.ts';
import { answering } from './room.ts';

export interface ToolCallText {
  tool: string;
  args: Record<string, unknown>;
}

export interface Asked {
  world: string;
  chat: string;
  posted: PostedAndIdle;
  /** The first that is pending in the chat. */
  approval: Approval;
}

/** A server whose agents make the tool calls that a message spells out, and then say what they gave. */
export interface AskingServer extends RealServer {
  /** What the tool `stamp` was run with. */
  stamps: unknown[];
  member: string;
  viewer: string;
  newWorld(name: string, settings?: Record<string, unknown>): Promise<string>;
  newChat(world: string): Promise<string>;
  /** Says it to the agent `a` and waits until the chat is idle. */
  say(world: string, chat: string, calls: readonly ToolCallText[]): Promise<PostedAndIdle>;
  /** A chat of its own in which a call waits for a person. */
  ask(world: string, calls: readonly ToolCallText[]): Promise<Asked>;
  answer(
    asked: { world: string; approval: { id: string } },
    body: unknown,
    options?: Parameters<RealServer['call']>[3],
  ): Promise<Answer>;
  read(asked: { world: string; approval: { id: string } }): Promise<Approval>;
  idle(asked: { world: string; chat: string }): Promise<void>;
}

const WORLDS = '/api/v1/worlds';
const OWNER = { tokenId: 'owner', role: 'owner', name: 'Owner' } as const;

/** A write that tells nobody but the test. */
function stampTool(stamps: unknown[]): Tool {
  return {
    name: 'stamp',
    description: 'stamps',
    parameters: { type: 'object' },
    effect: 'write',
    asks: 'by-permission',
    parse: (args) => ({ ok: true, args }),
    describe: async (args) => ({ ok: true, question: { title: 'Stamp?', message: JSON.stringify(args) } }),
    async run(args) {
      stamps.push(args);
      return { content: `stamped ${JSON.stringify(args)}`, isError: false };
    },
  };
}

async function* spelled(text: string): AsyncIterable<ModelPart> {
  const calls = JSON.parse(text.slice(text.indexOf('['))) as ToolCallText[];
  for (const [index, { tool, args }] of calls.entries()) {
    yield { type: 'toolCall', id: `c${index}`, name: tool, args, raw: JSON.stringify(args) };
  }
  yield { type: 'finish', stop: 'tool' };
}

export async function askingServer(): Promise<AskingServer> {
  const stamps: unknown[] = [];
  const models = answering(({ scene }) =>
    scene.toolResult === undefined && scene.text.includes('[') ? spelled(scene.text) : `got ${scene.toolResult}`,
  );
  const server = await realServer({ core: { models, tools: [stampTool(stamps)] } });
  const tokenOf = async (role: string, label: string) =>
    String((await server.call('POST', '/api/v1/tokens', { role, label })).body['token']);
  const made: AskingServer = {
    ...server,
    stamps,
    member: await tokenOf('member', 'Mira'),
    viewer: await tokenOf('viewer', 'Vic'),
    async newWorld(name, settings) {
      const { status, body } = await server.call('POST', WORLDS, { name, ...settings });
      if (status !== 201) throw new Error(`the world was refused with ${status}: ${JSON.stringify(body)}`);
      const world = String(body['id']);
      await server.call('POST', `${WORLDS}/${world}/agents`, { name: 'A' });
      return world;
    },
    newChat: async (world) => String((await server.call('POST', `${WORLDS}/${world}/chats`, {})).body['id']),
    async say(world, chat, calls) {
      const content = `@a ${JSON.stringify(calls)}`;
      const path = `${WORLDS}/${world}/chats/${chat}/messages?wait=idle&timeoutMs=20000`;
      const { status, body } = await server.call('POST', path, { content });
      if (status !== 201) throw new Error(`the message was refused with ${status}: ${JSON.stringify(body)}`);
      return PostedAndIdleSchema.parse(body);
    },
    async ask(world, calls) {
      const chat = await made.newChat(world);
      const posted = await made.say(world, chat, calls);
      const [approval] = posted.approvals;
      if (!approval) throw new Error(`nothing waits for a person: ${JSON.stringify(posted)}`);
      return { world, chat, posted, approval };
    },
    answer: ({ world, approval }, body, options) =>
      server.call('POST', `${WORLDS}/${world}/approvals/${approval.id}/answer`, body, options),
    read: async ({ world, approval }) =>
      (await server.call('GET', `${WORLDS}/${world}/approvals/${approval.id}`)).body as unknown as Approval,
    async idle({ world, chat }) {
      if (!(await server.parley.whenIdle(OWNER, world, chat, 20_000))) throw new Error('the chat did not become idle');
    },
  };
  return made;
}
