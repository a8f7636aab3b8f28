import type { Message } from '../../protocol/entities.ts';
import { AppError } from '../../protocol/errors.ts';
import type { ChatId, MessageId } from '../../protocol/ids.ts';
import { readPath, type Segment } from './branch-paths.ts';
import type { ChatRow } from './rows.ts';
import type { Session } from './session.ts';

/** A copy is one transaction, which holds everybody up for about as many microseconds times ten. */
const MAX_COPIED = 20_000;
const SLICE = 500;

/**
 * Copies a path into an empty chat under new ids and seqs, in the caller's transaction. Turns and their usage stay
 * where they were spent, and notices lose their buttons: what those would do belongs to the other chat.
 */
export function copyPath(session: Session, from: string, path: readonly Segment[], to: ChatRow): void {
  const { run, one, ids } = session;
  let total = 0;
  for (const { branch, after, upTo } of path) {
    const row = one<{ n: number }>(
      'select count(*) as n from messages indexed by messages_branch where chat_id = ? and branch = ? and seq > ? and seq <= ?',
      from,
      branch,
      after,
      upTo,
    );
    total += row?.n ?? 0;
  }
  if (total > MAX_COPIED)
    throw new AppError('too_large', `a fork copies at most ${MAX_COPIED} messages, this would be ${total}`);
  const copies = new Map<string, MessageId>();
  let after = 0;
  for (;;) {
    const { messages } = readPath(session, from, path, { after, limit: SLICE });
    for (const message of messages) {
      const copy = copyOf(message, to, ids.make('m') as MessageId, copies);
      run(
        'insert into messages (chat_id, seq, id, parent_id, branch, world_id, sender_kind, body) values (?, ?, ?, ?, 0, ?, ?, ?)',
        to.id,
        copy.seq,
        copy.id,
        to.head,
        to.world_id,
        copy.sender.kind,
        JSON.stringify(copy),
      );
      copies.set(message.id, copy.id);
      to.head = copy.id;
      to.next_seq = copy.seq + 1;
      after = message.seq;
    }
    if (messages.length < SLICE) return;
  }
}

function copyOf(message: Message, to: ChatRow, id: MessageId, copies: ReadonlyMap<string, MessageId>): Message {
  const { turnId: _turn, usage: _usage, replyTo, notice, ...said } = message;
  const answered = replyTo === undefined ? undefined : copies.get(replyTo);
  return {
    ...said,
    id,
    chatId: to.id as ChatId,
    seq: to.next_seq,
    parentId: to.head as MessageId | null,
    ...(answered === undefined ? {} : { replyTo: answered }),
    ...(notice === undefined ? {} : { notice: { kind: 'info' } }),
  };
}
