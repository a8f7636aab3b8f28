import type { Message, Turn } from '../core/protocol/entities.ts';
import { MAX_MESSAGE_BYTES, type Posted } from '../core/protocol/requests.ts';
import { type Client, createClient } from './client.ts';
import { type ConnectFlags, connect } from './connect.ts';
import { type Follower, followChat } from './follow.ts';
import { CommandError, ExitCode, type Io, line, printJson, styleFor } from './io.ts';
import { createLog } from './log.ts';
import type { Product } from './product.ts';
import { renderReceipt } from './render.ts';
import { createRoomView, type RoomView } from './room-view.ts';
import { safeName } from './safe-text.ts';
import { onInterrupt } from './signals.ts';

export interface RunFlags extends ConnectFlags {
  agent?: string;
  chat?: string;
  json?: boolean;
  timeout?: string;
  verbose?: boolean;
}

type Ending = 'done' | 'failed' | 'limit' | 'approval' | 'timeout' | 'interrupted';
const CODES: Record<Ending, ExitCode> = {
  done: ExitCode.done,
  failed: ExitCode.failed,
  limit: ExitCode.limit,
  approval: ExitCode.approval,
  timeout: ExitCode.failed,
  interrupted: ExitCode.interrupted,
};
const MAX_TIMEOUT_S = 86_400;
/** How long after a stop the server may take to say that everything has ended. */
const STOP_MS = 5_000;

/** One message to a world, until nobody there has anything left to do. */
export async function run(
  product: Product,
  io: Io,
  world: string,
  words: string | undefined,
  flags: RunFlags,
): Promise<ExitCode> {
  const timeoutMs = seconds(flags.timeout);
  const text = words ?? (await readAll(io));
  if (text.trim() === '') {
    throw new CommandError('there is no message: give one as an argument or on standard input', ExitCode.usage);
  }
  const stop = stopSwitch();
  const release = onInterrupt((count) => {
    if (count > 1) process.exit(ExitCode.interrupted);
    stop.because('interrupted');
  });
  try {
    const log = createLog(io, flags.verbose ? 'debug' : 'error', product.secrets);
    const client = createClient(await connect(flags, log, product.openLocal));
    try {
      return await converse(client, io, world, text, flags, { ...stop, timeoutMs });
    } finally {
      await client.close();
    }
  } finally {
    release();
  }
}

interface Stop {
  signal: AbortSignal;
  /** The first reason counts. */
  because(reason: Ending): void;
  reason(): Ending | null;
}

function stopSwitch(): Stop {
  const controller = new AbortController();
  let first: Ending | null = null;
  return {
    signal: controller.signal,
    because(reason) {
      first ??= reason;
      controller.abort(new CommandError(reason));
    },
    reason: () => first,
  };
}

async function converse(
  client: Client,
  io: Io,
  world: string,
  text: string,
  flags: RunFlags,
  stop: Stop & { timeoutMs: number | null },
): Promise<ExitCode> {
  const { agents } = await client.world(world);
  const content = flags.agent === undefined ? text : addressed((await client.agent(world, flags.agent)).id, text);
  const chat = flags.chat === undefined ? await client.createChat(world) : await client.chat(world, flags.chat);
  const names = new Map(agents.map(({ id, name }) => [String(id), name]));
  const heard: Message[] = [];
  const shown = flags.json
    ? silentView()
    : createRoomView(io, { nameOf: (id) => names.get(id) ?? id, live: io.stdout.isTTY === true });
  const view: RoomView = {
    ...shown,
    message(message) {
      heard.push(message);
      shown.message(message);
    },
  };
  const follower = await followChat(client, { world, chat: chat.id, afterSeq: chat.lastSeq }, view);
  try {
    if (stop.signal.aborted) return ExitCode.interrupted;
    const posted = await follower.post(content);
    if (!flags.json) receipt(io, posted);
    const turns = await untilSettled(client, world, chat.id, follower, stop);
    const ours = turns.filter(({ trigger }) => trigger.seq > chat.lastSeq);
    const result = stop.reason() ?? judge(ours, heard);
    report(io, result, ours, names, flags, { world, chat: chat.id, posted, heard });
    return CODES[result];
  } finally {
    await follower.close();
  }
}

/** A whole-name address that is taken out of the published text; other names in it wake nobody. */
function addressed(agentId: string, text: string): string {
  return `<world>TO: ${agentId}</world>\n${text}`;
}

/** Waits for the end of all turns; an interruption or the timeout ends them first. */
async function untilSettled(
  client: Client,
  world: string,
  chat: string,
  follower: Follower,
  stop: Stop & { timeoutMs: number | null },
): Promise<Turn[]> {
  const timer = stop.timeoutMs === null ? undefined : setTimeout(() => stop.because('timeout'), stop.timeoutMs);
  try {
    return await follower.settle(stop.signal);
  } catch (error) {
    if (stop.reason() === null) throw error;
  } finally {
    clearTimeout(timer);
  }
  await client.stop(world, chat);
  return follower.settle(AbortSignal.timeout(STOP_MS));
}

function judge(turns: readonly Turn[], heard: readonly Message[]): Ending {
  if (turns.some(({ state }) => state === 'failed')) return 'failed';
  if (turns.some(({ state }) => state === 'waiting')) return 'approval';
  return heard.some(({ notice }) => notice?.kind === 'limit') ? 'limit' : 'done';
}

function report(
  io: Io,
  ending: Ending,
  turns: readonly Turn[],
  names: ReadonlyMap<string, string>,
  flags: RunFlags,
  all: { world: string; chat: string; posted: Posted; heard: readonly Message[] },
): void {
  if (flags.json) {
    const { world, chat, posted, heard } = all;
    printJson(io, {
      status: ending,
      world,
      chat,
      message: posted.message,
      routing: posted.routing,
      messages: heard,
      turns,
    });
    return;
  }
  const style = styleFor(io.stderr);
  for (const turn of turns) {
    // The room has its own notice of a failure; a stop has none.
    if (turn.state === 'stopped')
      line(io.stderr, style.warn(`${safeName(names.get(turn.agentId) ?? turn.agentId)} was stopped`));
  }
  if (ending === 'timeout') line(io.stderr, style.bad(`not done after ${flags.timeout} s: stopped`));
  if (ending === 'interrupted') line(io.stderr, style.warn('interrupted: stopped'));
}

function receipt(io: Io, posted: Posted): void {
  const style = styleFor(io.stderr);
  const text = renderReceipt(posted.routing, style);
  if (text !== null) line(io.stderr, text);
  if (posted.turns.length === 0) line(io.stderr, style.warn('nobody was woken by this message'));
}

function silentView(): RoomView {
  return { message() {}, delta() {}, turn() {}, retrying() {}, settled() {} };
}

function seconds(text: string | undefined): number | null {
  if (text === undefined) return null;
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0 || value > MAX_TIMEOUT_S) {
    throw new CommandError(`--timeout must be seconds from 0 to ${MAX_TIMEOUT_S}, not ${text}`, ExitCode.usage);
  }
  return value * 1_000;
}

async function readAll(io: Io): Promise<string> {
  if (io.stdin.isTTY) {
    throw new CommandError('there is no message: give one as an argument or on standard input', ExitCode.usage);
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of io.stdin) {
    const buffer = Buffer.from(chunk);
    bytes += buffer.length;
    if (bytes > MAX_MESSAGE_BYTES) throw new CommandError(`the message is longer than ${MAX_MESSAGE_BYTES / 1024} KB`);
    chunks.push(buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}
