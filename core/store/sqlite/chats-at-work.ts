import type { Claim } from '../../ports.ts';
import { Fenced } from '../../ports.ts';
import { AppError } from '../../protocol/errors.ts';
import type { ChatRow } from './rows.ts';
import type { Session } from './session.ts';

/** A chat with the revision of its world's roster, which a routing plan is checked against. */
export type PlannedChat = ChatRow & { roster_rev: number };

/** A chat of a world. Throws AppError `not_found`. For use inside a transaction. */
export function findChat(session: Session, world: string, chat: string): PlannedChat {
  const row = session.one<PlannedChat>(
    'select c.*, w.roster_rev from chats c join worlds w on w.id = c.world_id where c.id = ? and c.world_id = ?',
    chat,
    world,
  );
  if (!row) {
    throw new AppError('not_found', `there is no chat ${JSON.stringify(chat)} in the world ${JSON.stringify(world)}`);
  }
  return row;
}

/** The chat of a claim that still holds. Throws Fenced. For use inside a transaction. */
export function claimedChat(session: Session, claim: Claim): PlannedChat {
  const row = session.one<PlannedChat>(
    `select c.*, w.roster_rev from run_queue q join chats c on c.id = q.chat_id join worlds w on w.id = c.world_id
     where q.chat_id = ? and q.owner = ? and q.fence = ?`,
    claim.chatId,
    claim.owner,
    Number(claim.fence),
  );
  if (!row) throw new Fenced(`the claim on chat ${claim.chatId} was lost`);
  return row;
}

/** Tells the workers that a chat has runnable work; a claim that somebody has on it stays. For use inside a transaction. */
export function enqueueChat(session: Session, chat: string, world: string): void {
  session.run(
    `insert into run_queue (chat_id, world_id, ready_at) values (?, ?, ?)
     on conflict (chat_id) do update set ready_at = excluded.ready_at`,
    chat,
    world,
    session.clock.now(),
  );
}
