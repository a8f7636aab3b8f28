import type { Actor, Branched, Clock, Idempotency, Ids, MessageDraft, Planned, Store } from '../ports.ts';
import type { Branch, Chat, Message, Turn } from '../protocol/entities.ts';
import { AppError } from '../protocol/errors.ts';
import type { StoredEvent } from '../protocol/events.ts';
import type { ChatId, MessageId } from '../protocol/ids.ts';
import { MAX_MESSAGE_BYTES, type Posted } from '../protocol/requests.ts';
import { requireRole } from './access.ts';
import type { Engine } from './engine.ts';
import type { Rosters } from './rosters.ts';
import { planHumanMessage } from './routing.ts';

/** A room may start turns and change its agents as often as this while somebody edits in it. */
const MAX_TRIES = 20;

export interface BranchDeps {
  store: Store;
  rosters: Rosters;
  engine: Engine;
  clock: Clock;
  ids: Ids;
  publish(events: readonly StoredEvent[]): void;
  needChat(world: string, chat: string): Promise<Chat>;
  /** Ends every turn of a chat. */
  silence(world: string, chat: string): Promise<void>;
  rename(actor: Actor, world: string, chat: string, patch: { title?: string | undefined }): Promise<Chat>;
}

/** What people do to what was said already: edit, answer again, delete, fork, go back to another branch. */
export function openBranches(deps: BranchDeps) {
  const { store, rosters, engine, clock, ids, publish, needChat, silence } = deps;

  /** Asks the store until no turn runs and the roster holds still; the store decides, so that a refused call stops nothing. */
  async function insist<T>(world: string, chat: string, change: () => Promise<Branched<T> | Planned<T>>): Promise<T> {
    for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
      const result = await change();
      if (result.ok) {
        publish(result.changed.events);
        if (result.changed.events.length > 0) engine.wake(chat);
        return result.changed.value;
      }
      if (result.reason === 'stale') rosters.drop(world);
      else await silence(world, chat);
    }
    throw new AppError('conflict', 'the chat did not come to rest; stop it and try again');
  }
  async function needMessage(world: string, chat: string, message: string): Promise<Message> {
    await needChat(world, chat);
    const found = await store.getMessage(chat, message);
    if (!found) throw new AppError('not_found', `there is no message ${JSON.stringify(message)} in this chat`);
    return found;
  }
  /** Members change what they said themselves; owners what anybody said. */
  function requireOwn(actor: Actor, { sender }: Message): void {
    requireRole(actor, sender.kind === 'human' && sender.id === actor.tokenId ? 'member' : 'owner');
  }

  return {
    async branches(_actor: Actor, world: string, chat: string): Promise<Branch[]> {
      await needChat(world, chat);
      return store.branches(chat);
    },

    async patchChat(
      actor: Actor,
      world: string,
      chat: string,
      patch: { title?: string | undefined; head?: string | undefined },
    ): Promise<Chat> {
      requireRole(actor, 'member');
      const { head, title } = patch;
      if (head === undefined) return deps.rename(actor, world, chat, { title });
      const switched = await insist(world, chat, () => store.switchBranch(world, chat, head));
      return title === undefined ? switched : deps.rename(actor, world, chat, { title });
    },

    async editMessage(
      actor: Actor,
      world: string,
      chat: string,
      message: string,
      content: string,
      idem?: Idempotency,
    ): Promise<Posted> {
      requireRole(actor, 'member');
      const before = await needMessage(world, chat, message);
      if (before.sender.kind !== 'human') {
        throw new AppError('conflict', 'only what a person said can be edited; let an agent answer again instead');
      }
      requireOwn(actor, before);
      if (Buffer.byteLength(content) > MAX_MESSAGE_BYTES)
        throw new AppError('too_large', `a message has at most ${MAX_MESSAGE_BYTES / 1024} KB of text`);
      const { sender } = before;
      const id = ids.make('m') as MessageId;
      return insist(world, chat, async () => {
        const nowMs = clock.now();
        const { published, plan } = planHumanMessage(await rosters.get(world), { id, sender, content, nowMs });
        if (published.trim() === '')
          throw new AppError('empty_message', 'the message would be empty; write something, or delete it');
        const draft: MessageDraft = { id, sender, content: published, status: 'complete' };
        return store.rewrite(world, chat, message, { draft, plan }, idem);
      });
    },

    async regenerate(
      actor: Actor,
      world: string,
      chat: string,
      message: string,
      idem?: Idempotency,
    ): Promise<{ turns: Turn[] }> {
      requireRole(actor, 'member');
      return insist(world, chat, () => store.regenerate(world, chat, message, idem));
    },

    async retryTurn(actor: Actor, world: string, chat: string, turn: string, idem?: Idempotency): Promise<Turn> {
      requireRole(actor, 'member');
      const { value, events } = await store.retry(world, chat, turn, idem);
      publish(events);
      engine.wake(chat);
      return value;
    },

    async deleteMessage(actor: Actor, world: string, chat: string, message: string): Promise<void> {
      requireRole(actor, 'member');
      requireOwn(actor, await needMessage(world, chat, message));
      publish((await store.deleteMessage(world, chat, message)).events);
    },

    async forkChat(actor: Actor, world: string, chat: string, message: string, idem?: Idempotency): Promise<Chat> {
      requireRole(actor, 'member');
      const fork = { id: ids.make('c') as ChatId, messageId: message as MessageId };
      const { value, events } = await store.fork(world, chat, fork, idem);
      publish(events);
      return value;
    },
  };
}
