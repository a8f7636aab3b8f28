import type { Approval, Message, Turn } from '../core/protocol/entities.ts';
import { AppError } from '../core/protocol/errors.ts';
import { isStored, type WorldEvent } from '../core/protocol/events.ts';
import type { Posted } from '../core/protocol/requests.ts';
import type { Client } from './client.ts';
import type { RoomView } from './room-view.ts';

const PAGE = 500;
const RECONNECT_MS = [100, 300, 1_000, 3_000] as const;
/** How long to trust the event stream before asking again whether turns are running. */
const ASK_AGAIN_MS = 2_000;
/** Refusals that asking again would not change; without a stream for another reason the chat is still read. */
const FINAL: ReadonlySet<string> = new Set(['not_found', 'unauthorized', 'forbidden']);

export interface Follower {
  /** Posts as this person; the message itself is not shown again. */
  post(content: string): Promise<Posted>;
  /**
   * Resolves when no turn of the chat is queued or running and every message up to then was shown. What waits for a
   * person does not count, nor what stands behind it.
   */
  settle(signal: AbortSignal): Promise<Turn[]>;
  /** Turns that are running as far as the stream has told. */
  running(): number;
  close(): Promise<void>;
}

/**
 * Shows one chat from message `afterSeq` on. The stream only makes it lively: messages and the end of
 * turns are read from the server, so that a broken stream costs nothing but time.
 */
export async function followChat(
  client: Client,
  at: { world: string; chat: string; afterSeq: number },
  view: RoomView,
  /** Every approval of the chat in each of its states; the same state may come twice. */
  onApproval: (approval: Approval) => void = () => {},
): Promise<Follower> {
  const stop = new AbortController();
  const running = new Set<string>();
  const own = new Set<string>();
  let lastSeq = at.afterSeq;
  let lastEvent: number | undefined;
  let posting: Promise<unknown> | null = null;
  let failure: unknown = null;
  let wake = () => {};

  const deliver = (message: Message) => {
    if (message.seq <= lastSeq) return;
    lastSeq = message.seq;
    if (!own.delete(message.id)) view.message(message);
  };

  const catchUp = async () => {
    for (;;) {
      const { messages } = await client.messages(at.world, at.chat, { after: lastSeq, limit: PAGE });
      for (const message of messages) deliver(message);
      if (messages.length < PAGE) return;
    }
  };

  const readApprovals = async () => {
    await catchUp();
    const { approvals } = await client.approvals(at.world, 'pending');
    for (const approval of approvals) if (approval.chatId === at.chat) onApproval(approval);
  };

  const onTurn = (turn: Turn) => {
    if (turn.state === 'queued' || turn.state === 'running') running.add(turn.id);
    else running.delete(turn.id);
    view.turn(turn);
    if (running.size === 0) wake();
  };

  const handle = async (event: WorldEvent) => {
    if (isStored(event)) lastEvent = event.seq;
    if (!('chat' in event) || event.chat !== at.chat) return;
    switch (event.type) {
      case 'message.created':
        if (event.data.message.seq > lastSeq + 1) await catchUp();
        return deliver(event.data.message);
      case 'message.delta':
        return view.delta(event.data);
      case 'turn.retrying':
        return view.retrying(event.data.agentId, event.data.message);
      case 'tool.started':
        return view.tool({ ...event.data, state: 'started' });
      case 'tool.finished':
        return view.tool({ ...event.data, state: event.data.isError ? 'failed' : 'done' });
      case 'approval.requested':
      case 'approval.answered':
      case 'approval.expired':
      case 'approval.cancelled':
        return onApproval(event.data.approval);
      case 'turn.waiting':
      case 'turn.queued':
      case 'turn.started':
      case 'turn.done':
      case 'turn.failed':
      case 'turn.stopped':
        return onTurn(event.data.turn);
      default:
        return;
    }
  };

  const listen = async (opened: () => void) => {
    for (let broken = 0; !stop.signal.aborted; broken += 1) {
      const onOpen = () => {
        broken = 0;
        opened();
      };
      try {
        for await (const event of client.events(at.world, { after: lastEvent, opened: onOpen }, stop.signal)) {
          await posting;
          await handle(event);
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error instanceof AppError && FINAL.has(error.code)) {
          failure = error;
          wake();
          return;
        }
      }
      wake();
      opened();
      await pause(RECONNECT_MS[Math.min(broken, RECONNECT_MS.length - 1)] ?? 3_000, stop.signal);
    }
  };

  let listening: Promise<void> = Promise.resolve();
  await new Promise<void>((resolve) => {
    listening = listen(resolve).finally(resolve);
  });

  return {
    running: () => running.size,
    async post(content) {
      const sent = client.post(at.world, at.chat, content);
      // Events wait for the answer, so that the person's own message is known when it comes back.
      posting = sent.then(
        ({ message }) => message && own.add(message.id),
        () => undefined,
      );
      const posted = await sent;
      for (const turn of posted.turns) running.add(turn.id);
      return posted;
    },
    async settle(signal) {
      for (;;) {
        signal.throwIfAborted();
        if (failure !== null) throw failure;
        const changed = new Promise<void>((resolve) => {
          wake = resolve;
        });
        const [{ turns }, { paused }] = await Promise.all([
          client.turns(at.world, at.chat),
          client.chat(at.world, at.chat),
        ]);
        const waiting = new Set(turns.filter(({ state }) => state === 'waiting').map(({ agentId }) => agentId));
        if (waiting.size > 0) await readApprovals();
        const busy = turns.some(
          ({ state, agentId }) => state === 'running' || (state === 'queued' && !paused && !waiting.has(agentId)),
        );
        if (!busy) {
          running.clear();
          await catchUp();
          view.settled();
          return turns;
        }
        const timer = new AbortController();
        await Promise.race([changed, pause(ASK_AGAIN_MS, AbortSignal.any([signal, timer.signal]))]);
        timer.abort();
      }
    },
    async close() {
      stop.abort();
      await listening;
    },
  };
}

/** Resolves after `ms` or when the signal aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { once: true });
  });
}
