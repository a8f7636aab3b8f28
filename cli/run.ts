import { systemClock } from '../core/machine.ts';
import type { Message, Turn } from '../core/protocol/entities.ts';
import { MAX_MESSAGE_BYTES, type Posted } from '../core/protocol/requests.ts';
import { renderCard, renderOutcome } from './approval-card.ts';
import { type ApproveMode, type Approver, createApprover } from './approver.ts';
import { askOnTerminal } from './ask-person.ts';
import { type Client, createClient } from './client.ts';
import { type ConnectFlags, connect } from './connect.ts';
import { type Follower, followChat } from './follow.ts';
import { CommandError, ExitCode, type Io, line, styleFor } from './io.ts';
import { createLog } from './log.ts';
import type { Product } from './product.ts';
import { renderReceipt } from './render.ts';
import { createRoomView, type RoomView } from './room-view.ts';
import { CODES, type Ending, judge, ledBy, report } from './run-outcome.ts';
import { safeName } from './safe-text.ts';
import { onInterrupt } from './signals.ts';

export interface RunFlags extends ConnectFlags {
  agent?: string;
  chat?: string;
  json?: boolean;
  /** yes, no or ask; default: ask on a terminal, no elsewhere. */
  approve?: string;
  timeout?: string;
  verbose?: boolean;
}

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
  const approve = flags.approve ?? (onTerminal(io) ? 'ask' : 'no');
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
      const mode = modeOf(io, client, approve);
      return await converse(client, io, world, text, flags, { ...stop, timeoutMs }, mode);
    } finally {
      await client.close();
    }
  } finally {
    release();
  }
}

const onTerminal = (io: Io) => io.stdin.isTTY === true && io.stderr.isTTY === true;

function modeOf(io: Io, client: Client, approve: string): ApproveMode {
  if (approve === 'yes' || approve === 'no') return approve;
  if (approve !== 'ask') throw new CommandError(`--approve is yes, no or ask, not ${approve}`, ExitCode.usage);
  if (onTerminal(io)) return 'ask';
  if (!client.isLocal) return 'wait';
  throw new CommandError(
    '--approve ask needs a terminal, or a server where somebody else can decide: start one with parley serve',
    ExitCode.usage,
  );
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
  mode: ApproveMode,
): Promise<ExitCode> {
  const { agents } = await client.world(world);
  const content = flags.agent === undefined ? text : addressed((await client.agent(world, flags.agent)).id, text);
  const chat = flags.chat === undefined ? await client.createChat(world) : await client.chat(world, flags.chat);
  const names = new Map(agents.map(({ id, name }) => [String(id), name]));
  const nameOf = (id: string) => names.get(id) ?? id;
  const heard: Message[] = [];
  let isAsking = false;
  const live = io.stdout.isTTY === true;
  const shown = flags.json ? silentView() : createRoomView(io, { nameOf, live, isHeld: () => isAsking });
  const view: RoomView = {
    ...shown,
    message(message) {
      heard.push(message);
      shown.message(message);
    },
  };
  const style = styleFor(io.stderr);
  const person = mode === 'ask' ? askOnTerminal(io, style) : null;
  let tellPosted: (posted: Posted) => void = () => {};
  const whenPosted = new Promise<Posted>((resolve) => {
    tellPosted = resolve;
  });
  const approver = createApprover({
    client,
    mode,
    async isOurs({ turnId }) {
      const { message } = await whenPosted;
      const { turns } = await client.turns(world, chat.id);
      return ledBy(message.id, turns, heard).has(turnId);
    },
    ask: (approval, signal) => person?.ask(approval, signal) ?? Promise.reject(new Error('there is nobody to ask')),
    asked: (approval) => {
      isAsking = person !== null;
      line(io.stderr, renderCard(approval, nameOf(approval.agentId), null, style));
      if (mode === 'wait') line(io.stderr, style.dim(`waits: parley approvals answer ${safeName(approval.id)} OPTION`));
    },
    decided: (approval) => {
      isAsking = false;
      line(io.stderr, renderOutcome(approval, style));
    },
    after: systemClock.after,
    now: systemClock.now,
    signal: stop.signal,
  });
  const at = { world, chat: chat.id, afterSeq: chat.lastSeq };
  const follower = await followChat(client, at, view, approver.see);
  try {
    if (stop.signal.aborted) return ExitCode.interrupted;
    const posted = await follower.post(content);
    tellPosted(posted);
    if (!flags.json) receipt(io, posted);
    const turns = await untilSettled(client, world, chat.id, follower, approver, stop);
    const led = ledBy(posted.message.id, turns, heard);
    const ours = turns.filter(({ id }) => led.has(id));
    const result = stop.reason() ?? judge(ours, turns, heard, approver.decisions());
    report(io, result, ours, names, flags, { world, chat: chat.id, posted, heard, approvals: approver.decisions() });
    return CODES[result];
  } finally {
    person?.close();
    await follower.close();
  }
}

/** A whole-name address that is taken out of the published text; other names in it wake nobody. */
function addressed(agentId: string, text: string): string {
  return `<world>TO: ${agentId}</world>\n${text}`;
}

/** Waits for the end of all turns and decides what they ask for; an interruption or the timeout ends them first. */
async function untilSettled(
  client: Client,
  world: string,
  chat: string,
  follower: Follower,
  approver: Approver,
  stop: Stop & { timeoutMs: number | null },
): Promise<Turn[]> {
  const timer = stop.timeoutMs === null ? undefined : setTimeout(() => stop.because('timeout'), stop.timeoutMs);
  try {
    for (;;) {
      const turns = await follower.settle(stop.signal);
      if (!(await approver.rest())) return turns;
    }
  } catch (error) {
    if (stop.reason() === null) throw error;
  } finally {
    clearTimeout(timer);
  }
  await client.stop(world, chat);
  return follower.settle(AbortSignal.timeout(STOP_MS));
}

function receipt(io: Io, posted: Posted): void {
  const style = styleFor(io.stderr);
  const text = renderReceipt(posted.routing, style);
  if (text !== null) line(io.stderr, text);
  if (posted.turns.length === 0) line(io.stderr, style.warn('nobody was woken by this message'));
}

function silentView(): RoomView {
  return { message() {}, delta() {}, turn() {}, retrying() {}, tool() {}, settled() {} };
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
