/** Branches of a chat: other ways that it went on from one of its messages. */
import type { Branch, Chat, Turn } from '../protocol/entities.ts';
import type { ChatId, MessageId } from '../protocol/ids.ts';
import type { Posted } from '../protocol/requests.ts';
import type { Changed, Idempotency, MessageDraft, Planned, RoutePlan } from './changing.ts';

/** `running`: a turn of the chat runs; stop it and ask again. Nothing was changed. */
export type Branched<T> = { ok: true; changed: Changed<T> } | { ok: false; reason: 'running' };

/**
 * Changing the active branch ends the chat's queued and waiting turns in the same transaction, starts the limits'
 * count anew and writes `chat.updated`. Nothing is taken away: what was said before stays on its branch.
 * All throw AppError `not_found` for ids that the chat does not have.
 */
export interface Branches {
  branches(chat: string): Promise<Branch[]>;
  /** Makes the branch active that ends with this message, else the one that it was said on; none changes where the active one has it. */
  switchBranch(world: string, chat: string, message: string): Promise<Branched<Chat>>;
  /** Says it again on a new branch that forks before the message. Throws `conflict` where no person said it. */
  rewrite(
    world: string,
    chat: string,
    message: string,
    input: { draft: MessageDraft; plan: RoutePlan },
    idem?: Idempotency,
  ): Promise<Branched<Posted> | Planned<Posted>>;
  /**
   * Wakes again, on a new branch: the agent that wrote the message, for what it answered, before the message; or all
   * agents that a person's message woke, after it. Throws `conflict` for other messages and where no such agent is active.
   */
  regenerate(world: string, chat: string, message: string, idem?: Idempotency): Promise<Branched<{ turns: Turn[] }>>;
  /** A new turn for a failed or stopped one's trigger. Throws `conflict` for other states, other branches and doubles. */
  retry(world: string, chat: string, turn: string, idem?: Idempotency): Promise<Changed<Turn>>;
  /** Blanks what was said in the row, in the stored events, in the journal and in the search index; `seq` stays. */
  deleteMessage(world: string, chat: string, message: string): Promise<Changed<null>>;
  /** A new chat with copies of the path up to a message. Throws `too_large` for more than 20,000 messages. */
  fork(
    world: string,
    chat: string,
    fork: { id: ChatId; messageId: MessageId },
    idem?: Idempotency,
  ): Promise<Changed<Chat>>;
}
