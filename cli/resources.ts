import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline/promises';
import { AgentSettings, type WorldAgent, WorldSettings } from '../core/protocol/entities.ts';
import { type Client, createClient } from './client.ts';
import { type ConnectFlags, connect } from './connect.ts';
import { CommandError, ExitCode, type Io, line, printJson, type Style, styleFor } from './io.ts';
import { createLog } from './log.ts';
import type { Product } from './product.ts';
import { renderMessage, renderTable } from './render.ts';
import { safeName, safeText } from './safe-text.ts';

export interface ResourceFlags extends ConnectFlags {
  json?: boolean;
  yes?: boolean;
  verbose?: boolean;
  set?: string[];
  description?: string;
  title?: string;
  provider?: string;
  model?: string;
  prompt?: string;
  promptFile?: string;
  limit?: string;
}

interface Call {
  client: Client;
  io: Io;
  style: Style;
  flags: ResourceFlags;
}

/** Every resource command by its name; the ids are the command's arguments. */
const COMMANDS = {
  'worlds list': worldsList,
  'worlds show': worldsShow,
  'worlds create': worldsCreate,
  'worlds delete': worldsDelete,
  'agents list': agentsList,
  'agents show': agentsShow,
  'agents create': agentsCreate,
  'agents delete': agentsDelete,
  'chats list': chatsList,
  'chats show': chatsShow,
  'chats create': chatsCreate,
  'chats delete': chatsDelete,
} as const;
export type ResourceCommand = keyof typeof COMMANDS;

export async function resource(
  product: Product,
  io: Io,
  command: ResourceCommand,
  ids: readonly string[],
  flags: ResourceFlags,
): Promise<ExitCode> {
  const connection = await connect(
    flags,
    createLog(io, flags.verbose ? 'debug' : 'error', product.secrets),
    product.openLocal,
  );
  const client = createClient(connection);
  try {
    const [first = '', second = ''] = ids;
    await COMMANDS[command]({ client, io, style: styleFor(io.stdout), flags }, first, second);
    return ExitCode.done;
  } finally {
    await client.close();
  }
}

async function worldsList({ client, io, style, flags }: Call) {
  const answer = await client.worlds();
  if (flags.json) return printJson(io, answer);
  const rows = answer.worlds.map(({ id, name, description }) => [id, name, description]);
  line(io.stdout, renderTable(['ID', 'NAME', 'DESCRIPTION'], rows, style));
}

async function worldsShow({ client, io, style, flags }: Call, world: string) {
  const answer = await client.world(world);
  if (flags.json) return printJson(io, answer);
  const { agents, chats, ...settings } = answer;
  line(io.stdout, renderFields(settings, style));
  line(io.stdout, `\n${agentTable(agents, style)}\n\n${chatTable(chats, style)}`);
}

async function worldsCreate({ client, io, flags }: Call, name: string) {
  const settings = { ...assignments(flags.set, WorldSettings.shape), ...given({ description: flags.description }) };
  created(io, flags, await client.createWorld({ name, ...settings }));
}

async function worldsDelete({ client, io, flags }: Call, world: string) {
  const { id, name, agents, chats } = await client.world(world);
  await confirm(io, flags, `world ${name} with its ${agents.length} agents and ${chats.length} chats`);
  await client.deleteWorld(id);
  deleted(io, flags, id);
}

async function agentsList({ client, io, style, flags }: Call, world: string) {
  const answer = await client.agents(world);
  if (flags.json) return printJson(io, answer);
  line(io.stdout, agentTable(answer.agents, style));
}

async function agentsShow({ client, io, style, flags }: Call, world: string, agent: string) {
  const answer = await client.agent(world, agent);
  if (flags.json) return printJson(io, answer);
  line(io.stdout, renderFields(answer, style));
}

async function agentsCreate({ client, io, flags }: Call, world: string, name: string) {
  if (flags.prompt !== undefined && flags.promptFile !== undefined) {
    throw new CommandError('give --prompt or --prompt-file, not both', ExitCode.usage);
  }
  const systemPrompt = flags.promptFile === undefined ? flags.prompt : await readFile(flags.promptFile, 'utf8');
  const { description, provider, model } = flags;
  const settings = {
    ...assignments(flags.set, AgentSettings.shape),
    ...given({ description, provider, model, systemPrompt }),
  };
  const agent = await client.createAgent(world, { name, ...settings });
  created(io, flags, agent);
  if (!flags.json) line(io.stderr, styleFor(io.stderr).dim(`source: ${originOf(agent)}`));
}

async function agentsDelete({ client, io, flags }: Call, world: string, agent: string) {
  const { id, name } = await client.agent(world, agent);
  await confirm(io, flags, `agent ${name}`);
  await client.deleteAgent(world, id);
  deleted(io, flags, id);
}

async function chatsList({ client, io, style, flags }: Call, world: string) {
  const answer = await client.chats(world);
  if (flags.json) return printJson(io, answer);
  line(io.stdout, chatTable(answer.chats, style));
}

async function chatsShow({ client, io, style, flags }: Call, world: string, chat: string) {
  const limit = Number(flags.limit ?? '50');
  if (!Number.isInteger(limit) || limit < 1 || limit > 500) {
    throw new CommandError(`--limit must be a whole number from 1 to 500, not ${flags.limit}`, ExitCode.usage);
  }
  const head = await client.chat(world, chat);
  const page = await client.messages(world, chat, { limit });
  if (flags.json) return printJson(io, { ...head, ...page });
  for (const message of page.messages) line(io.stdout, renderMessage(message, style));
  if (page.next !== null)
    line(io.stderr, `the newest ${page.messages.length} of ${head.lastSeq} messages; --limit shows more`);
}

async function chatsCreate({ client, io, flags }: Call, world: string) {
  created(io, flags, await client.createChat(world, flags.title));
}

async function chatsDelete({ client, io, flags }: Call, world: string, chat: string) {
  const { id, title, lastSeq } = await client.chat(world, chat);
  await confirm(io, flags, `chat ${title || id} with its ${lastSeq} messages`);
  await client.deleteChat(world, id);
  deleted(io, flags, id);
}

function agentTable(agents: Awaited<ReturnType<Client['agents']>>['agents'], style: Style): string {
  const rows = agents.map((a) => {
    const model = `${a.provider ?? '(world)'}/${a.model ?? '(world)'}`;
    return [a.id, a.status, originOf(a), model, a.description];
  });
  return renderTable(['AGENT', 'STATUS', 'SOURCE', 'MODEL', 'DESCRIPTION'], rows, style);
}

function originOf({ source, createdBy }: Pick<WorldAgent, 'source' | 'createdBy'>): string {
  return safeName(createdBy === undefined ? source : `${source}, by ${createdBy}`);
}

function chatTable(chats: Awaited<ReturnType<Client['chats']>>['chats'], style: Style): string {
  const rows = chats.map(({ id, title, lastSeq, updatedAt }) => [id, String(lastSeq), updatedAt, title]);
  return renderTable(['CHAT', 'MESSAGES', 'UPDATED', 'TITLE'], rows, style);
}

function renderFields(fields: Record<string, unknown>, style: Style): string {
  const shown = Object.entries(fields).map(([name, value]) => {
    const text = typeof value === 'string' ? safeText(value) : safeText(JSON.stringify(value) ?? '');
    return `${style.dim(`${name}:`)} ${text}`;
  });
  return shown.join('\n');
}

function created(io: Io, flags: ResourceFlags, answer: { id: string }): void {
  if (flags.json) printJson(io, answer);
  else line(io.stdout, safeName(answer.id));
}

function deleted(io: Io, flags: ResourceFlags, id: string): void {
  if (flags.json) printJson(io, { deleted: id });
  else line(io.stderr, `deleted ${safeName(id)}`);
}

/** `name=value` pairs; a value is JSON where it is, else text. The server checks it. */
export function assignments(
  pairs: readonly string[] | undefined,
  known: Record<string, unknown>,
): Record<string, unknown> {
  const settings = (pairs ?? []).map((pair) => {
    const at = pair.indexOf('=');
    const name = pair.slice(0, Math.max(at, 0));
    if (!Object.hasOwn(known, name)) {
      const names = Object.keys(known).join(', ');
      throw new CommandError(`--set takes name=value with a name of: ${names}; not ${pair}`, ExitCode.usage);
    }
    return [name, jsonOrText(pair.slice(at + 1))] as const;
  });
  return Object.fromEntries(settings);
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // plain words need no quotes
  }
}

function given<T extends Record<string, unknown>>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}

async function confirm(io: Io, flags: ResourceFlags, what: string): Promise<void> {
  if (flags.yes) return;
  if (!io.stdin.isTTY || !io.stderr.isTTY) {
    throw new CommandError('deleting without a terminal needs --yes', ExitCode.usage);
  }
  const prompt = createInterface({ input: io.stdin, output: io.stderr });
  try {
    const answer = await prompt.question(`Delete ${safeName(what)} for good? [y/N] `);
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new CommandError('nothing was deleted');
  } finally {
    prompt.close();
  }
}
