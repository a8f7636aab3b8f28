import { clearLine, createInterface, cursorTo, type Interface } from 'node:readline';
import type { Posted } from '../core/protocol/requests.ts';
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
    let prompted = false;
    const takePromptAway = () => {
      if (!prompted) return;
      prompted = false;
      clearLine(io.stdout, 0);
      cursorTo(io.stdout, 0);
    };
    const view = createRoomView(io, {
      nameOf: (id) => names.get(id) ?? id,
      live: io.stdout.isTTY === true,
      before: takePromptAway,
    });
    const follower = await followChat(client, { world, chat: chat.id, afterSeq: chat.lastSeq }, view);
    const input = createInterface({
      input: io.stdin,
      ...(terminal ? { output: io.stdout, prompt: `${style.bold('you')}: ` } : {}),
      terminal,
    });
    try {
      const room: Room = { client, world, chat: chat.id, follower, io, style };
      input.on('line', () => {
        prompted = false;
      });
      return await talk(room, input, () => {
        if (!terminal) return;
        input.prompt();
        prompted = true;
      });
    } finally {
      input.close();
      await follower.close();
    }
  } finally {
    await client.close();
  }
}

async function talk(room: Room, input: Interface, prompt: () => void): Promise<ExitCode> {
  const leave = new AbortController();
  let interrupted = false;
  const interrupt = () => {
    const busy = room.follower.running() > 0;
    if (!busy || interrupted) {
      leave.abort();
      input.close();
      return;
    }
    interrupted = true;
    line(room.io.stderr, `\n${room.style.warn('stopping; Ctrl-C again leaves')}`);
    room.client.stop(room.world, room.chat).catch((error: unknown) => line(room.io.stderr, explain(error)));
  };
  input.on('SIGINT', interrupt);
  const release = onInterrupt(interrupt);
  try {
    prompt();
    for await (const text of input) {
      interrupted = false;
      try {
        if (await obey(room, text, leave.signal)) break;
      } catch (error) {
        if (leave.signal.aborted) break;
        line(room.io.stderr, room.style.bad(explain(error)));
      }
      prompt();
    }
    return leave.signal.aborted ? ExitCode.interrupted : ExitCode.done;
  } finally {
    release();
  }
}

/** Does what a line says; true where the person wants to leave. */
async function obey(room: Room, text: string, signal: AbortSignal): Promise<boolean> {
  const { client, world, chat, io, style } = room;
  switch (text.trim()) {
    case '':
      return false;
    case '/quit':
    case '/exit':
      return true;
    case '/help':
      for (const help of HELP) line(io.stderr, style.dim(help));
      return false;
    case '/agents': {
      const { agents } = await client.agents(world);
      for (const { id, description, status } of agents) {
        line(io.stderr, `@${safeName(id)} ${style.dim(`${status} ${safeName(description)}`)}`);
      }
      return false;
    }
    case '/stop':
      await client.stop(world, chat);
      return false;
    case '/continue':
      await client.continueChat(world, chat);
      break;
    default:
      receipt(room, await room.follower.post(text));
  }
  await room.follower.settle(signal);
  return false;
}

function receipt({ io, style }: Room, posted: Posted): void {
  const text = renderReceipt(posted.routing, style);
  if (text !== null) line(io.stderr, text);
  if (posted.turns.length === 0) line(io.stderr, style.warn('nobody was woken by this message'));
}
