import type { Actor, Bus, Clock, Idempotency, Ids, MessageDraft, PageQuery, Store } from '../ports.ts';
import type { Chat, Sender, Turn } from '../protocol/entities.ts';
import { AppError } from '../protocol/errors.ts';
import { isStored, type StoredEvent } from '../protocol/events.ts';
import type { AgentId, MessageId } from '../protocol/ids.ts';
import { MAX_MESSAGE_BYTES, type MessagePage, type Posted } from '../protocol/requests.ts';
import { requireRole } from './access.ts';
import type { Engine } from './engine.ts';
import { grantHeld } from './limits.ts';
import type { Rosters } from './rosters.ts';
import { planHumanMessage } from './routing.ts';

const MAX_REPLANS = 20;
const MAX_TITLE = 60;
const OPEN: ReadonlySet<Turn['state']> = new Set(['queued', 'running', 'waiting']);

export interface TalkDeps {
  store: Store;
  rosters: Rosters;
  engine: Engine;
  bus: Bus;
  clock: Clock;
  ids: Ids;
  publish(events: readonly StoredEvent[]): void;
  needChat(world: string, chat: string): Promise<Chat>;
  silence(world: string, chat: string): Promise<void>;
}

/** What people do in a chat: say something, read, wait, stop, go on. */
export function openTalk(deps: TalkDeps) {
  const { store, rosters, engine, bus, clock, ids, publish, needChat } = deps;

  async function setPaused(actor: Actor, world: string, chat: string, paused: boolean): Promise<Chat> {
    requireRole(actor, 'member');
    const before = await needChat(world, chat);
    if (before.paused === paused) return before;
    const { value, events } = await store.patchChat(world, chat, { paused });
    publish(events);
    engine.wake(chat);
    return value;
  }

  return {
    async messages(_actor: Actor, world: string, chat: string, page: PageQuery): Promise<MessagePage> {
      await needChat(world, chat);
      return store.messages(chat, page);
    },
    async turns(_actor: Actor, world: string, chat: string): Promise<Turn[]> {
      await needChat(world, chat);
      return store.turns(chat, 500);
    },

    async post(actor: Actor, world: string, chat: string, content: string, idem?: Idempotency): Promise<Posted> {
      requireRole(actor, 'member');
      if (Buffer.byteLength(content) > MAX_MESSAGE_BYTES) {
        throw new AppError('too_large', `a message has at most ${MAX_MESSAGE_BYTES / 1024} KB of text`);
      }
      if (content.trim() === '') throw new AppError('empty_message', 'the message is empty; write something');
      const sender: Sender = { kind: 'human', id: actor.tokenId, name: actor.name };
      const id = ids.make('m') as MessageId;
      for (let attempt = 0; attempt < MAX_REPLANS; attempt++) {
        const { published, plan } = planHumanMessage(await rosters.get(world), {
          id,
          sender,
          content,
          nowMs: clock.now(),
        });
        if (published === '') {
          throw new AppError(
            'empty_message',
            'without its control tags the message is empty; write something beside them',
          );
        }
        const draft: MessageDraft = { id, sender, content: published, status: 'complete' };
        const posted = await store.post(world, chat, { draft, plan, fromHuman: true, title: titleOf(published) }, idem);
        if (posted.ok) {
          publish(posted.changed.events);
          if (posted.changed.value.turns.length > 0) engine.wake(chat);
          return posted.changed.value;
        }
        rosters.drop(world);
      }
      throw new AppError('conflict', 'the world’s agents changed at every try to route the message; send it again');
    },

    async forward(
      actor: Actor,
      world: string,
      chat: string,
      message: string,
      agentId: string,
      idem?: Idempotency,
    ): Promise<Turn> {
      requireRole(actor, 'member');
      const wake = { messageId: message as MessageId, agentId: agentId as AgentId, reason: 'forward' } as const;
      const { value, events } = await store.wake(world, chat, wake, idem);
      publish(events);
      engine.wake(chat);
      return value;
    },

    async whenIdle(
      _actor: Actor,
      world: string,
      chat: string,
      timeoutMs: number,
      signal?: AbortSignal,
    ): Promise<boolean> {
      await needChat(world, chat);
      return new Promise<boolean>((resolve, reject) => {
        const finish = (idle: boolean) => {
          unsubscribe();
          cancel();
          signal?.removeEventListener('abort', onAbort);
          resolve(idle);
        };
        const onAbort = () => finish(false);
        const check = () => {
          store.isIdle(chat).then(
            (idle) => idle && finish(true),
            (error: unknown) => {
              finish(false);
              reject(error);
            },
          );
        };
        const unsubscribe = bus.subscribe(world, (event) => {
          if (!isStored(event)) return;
          if (event.type === 'world.deleted') return finish(true);
          if (!('chat' in event) || event.chat !== chat) return;
          if (event.type === 'turn.queued' || event.type === 'turn.started') return;
          if (event.type.startsWith('turn.') || event.type === 'chat.deleted') check();
        });
        const cancel = clock.after(timeoutMs, () => finish(false));
        if (signal?.aborted) return finish(false);
        signal?.addEventListener('abort', onAbort, { once: true });
        check();
      });
    },

    async stop(actor: Actor, world: string, chat: string): Promise<{ stopped: number }> {
      requireRole(actor, 'member');
      await needChat(world, chat);
      const open = (await store.turns(chat, 500)).filter(({ state }) => OPEN.has(state));
      await deps.silence(world, chat);
      return { stopped: open.length };
    },
    pause: (actor: Actor, world: string, chat: string) => setPaused(actor, world, chat, true),
    resume: (actor: Actor, world: string, chat: string) => setPaused(actor, world, chat, false),

    async continueChat(actor: Actor, world: string, chat: string): Promise<{ turns: Turn[] }> {
      requireRole(actor, 'member');
      const { world: settings } = await rosters.get(world);
      const continued = await store.continueChat(world, chat, (ledger, granted) =>
        grantHeld(ledger, settings, granted),
      );
      if (!continued) throw new AppError('nothing_to_continue', 'no limit holds anything back in this chat');
      publish(continued.events);
      engine.wake(chat);
      return continued.value;
    },
  };
}

/** A chat is called after its first message: its first line, without marks of emphasis and headings. */
function titleOf(text: string): string {
  const line = text.split('\n').find((one) => one.trim() !== '') ?? '';
  const plain = line
    .replace(/^[\s#>*_-]+/, '')
    .replace(/\s+/g, ' ')
    .trim();
  const letters = [...plain];
  return letters.length <= MAX_TITLE
    ? plain
    : `${letters
        .slice(0, MAX_TITLE - 1)
        .join('')
        .trimEnd()}…`;
}
