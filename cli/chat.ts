import type { Posted } from '../core/protocol/requests.ts';
import { type ChatApprovals, createChatApprovals } from './chat-approvals.ts';
import { type Console, openConsole } from './chat-console.ts';
import { type Client, createClient } from './client.ts';
import { type ConnectFlags, connect } from './connect.ts';
import { explain } from './explain.ts';
import { type Follower, followChat } from './follow.ts';
import { ExitCode, type Io, line, type Style, styleFor } from './io.ts';
import { createLog } from './log.ts';
import type { Product } from './product.ts';
import { renderReceipt } from './render.ts';
import { createRoomView } from './room-view.ts';
import { safeName } from './safe-text.ts';
import { onInterrupt } from './signals.ts';

export interface ChatFlags extends ConnectFlags {
  chat?: string;
  verbose?: boolean;
}

const HELP = [
  '@name        address an agent; the line below a message says whom it woke and why',
  'y, n, 1-9    decide, only where the prompt shows an approval; n REASON says no and why',
  '/approvals   what waits for a decision in this chat',
  '/answer N    show approval N; /answer N yes, no or another option decides it',
  '/say TEXT    a message, where the prompt would take the text as an answer',
  '/agents      who is in the room',
  '/continue    grant a reached limit the same amount again',
  '/stop        end what is running (as Ctrl-C does)',
  '/quit        leave (as Ctrl-D does); agents that are still at work go on where a server runs',
];

interface Room {
  client: Client;
  world: string;
  chat: string;
  follower: Follower;
  approvals: ChatApprovals;
  console: Console;
  io: Io;
  style: Style;
}

/** A conversation in one chat until the input ends. Lines from a pipe are answered one after another. */
export async function chat(product: Product, io: Io, world: string, flags: ChatFlags): Promise<ExitCode> {
  const connection = await connect(
    flags,
    createLog(io, flags.verbose ? 'debug' : 'error', product.secrets),
    product.openLocal,
  );
  const client = createClient(connection);
  try {
    const { agents, name } = await client.world(world);
    const chat = flags.chat === undefined ? await client.createChat(world) : await client.chat(world, flags.chat);
    const names = new Map(agents.map(({ id, name: agent }) => [String(id), agent]));
    const terminal = io.stdin.isTTY === true && io.stdout.isTTY === true;
    const style = styleFor(io.stderr);
    if (terminal) {
      line(io.stderr, style.bold(safeName(name)) + style.dim(` with ${[...names.values()].map(safeName).join(', ')}`));
      line(io.stderr, style.dim(`chat ${chat.id}; /help for what you can do here`));
    }
    const nameOf = (id: string) => names.get(id) ?? id;
    const console = openConsole(io, style, terminal);
    try {
      const approvals = createChatApprovals({ client, io, style, console, nameOf });
      const view = createRoomView(io, {
        nameOf,
        live: io.stdout.isTTY === true,
        before: console.hide,
        after: console.restore,
        isHeld: () => terminal && approvals.isAsking(),
      });
      const at = { world, chat: chat.id, afterSeq: chat.lastSeq };
      const follower = await followChat(client, at, view, approvals.see);
      try {
        const old = flags.chat === undefined ? [] : (await client.approvals(world, 'pending')).approvals;
        for (const approval of old) if (approval.chatId === chat.id) approvals.see(approval);
        return await talk({ client, world, chat: chat.id, follower, approvals, console, io, style });
      } finally {
        await follower.close();
      }
    } finally {
      console.close();
    }
  } finally {
    await client.close();
  }
}

async function talk(room: Room): Promise<ExitCode> {
  const { console, approvals, style } = room;
  const leave = new AbortController();
  let interrupted = false;
  const interrupt = () => {
    const busy = room.follower.running() > 0;
    if (!busy || interrupted) {
      leave.abort();
      console.close();
      return;
    }
    interrupted = true;
    say(room, `\n${style.warn('stopping; Ctrl-C again leaves')}`);
    room.client.stop(room.world, room.chat).catch((error: unknown) => say(room, explain(error)));
  };
  console.onInterrupt(interrupt);
  const release = onInterrupt(interrupt);
  const quiet = quietness(room, leave.signal);
  try {
    approvals.present();
    for await (const { text, asked } of console.lines()) {
      interrupted = false;
      try {
        const next = await obey(room, text, asked);
        if (next === 'leave') break;
        if (next === 'wait') await quiet();
      } catch (error) {
        if (leave.signal.aborted) break;
        say(room, style.bad(explain(error)));
      }
      approvals.present();
    }
    if (leave.signal.aborted) return ExitCode.interrupted;
    const waiting = approvals.pending().length;
    if (waiting === 0) return ExitCode.done;
    say(room, style.warn(`${waiting} waiting for a decision: parley approvals list shows what`));
    return console.isTerminal ? ExitCode.done : ExitCode.approval;
  } finally {
    leave.abort();
    release();
  }
}

/**
 * Waits until nothing runs in the chat. On a terminal it returns earlier where something waits for the person; the rest
 * is then awaited in the background.
 */
function quietness(room: Room, signal: AbortSignal): () => Promise<void> {
  const { follower, approvals, console, style } = room;
  let background = new AbortController();
  return async () => {
    background.abort();
    if (!console.isTerminal) {
      await follower.settle(signal);
      return;
    }
    const mine = new AbortController();
    background = mine;
    const settled = follower.settle(AbortSignal.any([signal, mine.signal]));
    const inBackground = await Promise.race([settled.then(() => false), approvals.untilWaiting().then(() => true)]);
    if (!inBackground) return;
    settled.catch((error: unknown) => {
      if (!signal.aborted && !mine.signal.aborted) say(room, style.bad(explain(error)));
    });
  };
}

/** Does what a line says; `wait`: agents may be at work because of it. */
async function obey(room: Room, text: string, asked: string | null): Promise<'leave' | 'wait' | 'next'> {
  const { client, world, chat, style, approvals } = room;
  const said = text.trim();
  const [, command = '', rest = ''] = /^(\/[a-z]+)(?:\s+(.*))?$/s.exec(said) ?? [];
  switch (command) {
    case '/quit':
    case '/exit':
      return 'leave';
    case '/help':
      for (const help of HELP) say(room, style.dim(help));
      return 'next';
    case '/agents': {
      const { agents } = await client.agents(world);
      for (const { id, description, status } of agents) {
        say(room, `@${safeName(id)} ${style.dim(`${status} ${safeName(description)}`)}`);
      }
      return 'next';
    }
    case '/approvals':
      approvals.list();
      return 'next';
    case '/answer':
      await approvals.command(rest);
      return 'wait';
    case '/stop':
      await client.stop(world, chat);
      return 'next';
    case '/continue':
      await client.continueChat(world, chat);
      return 'wait';
    case '/say':
      receipt(room, await room.follower.post(rest));
      return 'wait';
    default:
      if (said === '') return 'next';
      if (asked === null || !(await approvals.take(asked, said))) receipt(room, await room.follower.post(text));
      return 'wait';
  }
}

function receipt(room: Room, posted: Posted): void {
  const { style } = room;
  const text = renderReceipt(posted.routing, style);
  if (text !== null) say(room, text);
  if (posted.turns.length === 0) say(room, style.warn('nobody was woken by this message'));
}

/** A line on standard error; a prompt that stands there makes way. */
function say({ console, io }: Room, text: string): void {
  console.hide();
  line(io.stderr, text);
}
