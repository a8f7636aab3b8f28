import type { Message } from '../../protocol/entities.ts';
import { toMessage } from './rows.ts';
import type { Session } from './session.ts';

const SLICE = 500;
const PLACE = 'search_rowid';

/**
 * Full text over the active branches of a world's chats. The index is brought up to date when somebody searches, in slices that leave the
 * event loop free, so that posting a message pays nothing for it.
 */
export async function searchMessages(
  session: Session,
  world: string,
  query: string,
  limit: number,
): Promise<Message[]> {
  session.run(
    'create virtual table if not exists message_search using fts5(content, world_id unindexed, message_rowid unindexed)',
  );
  while (indexSlice(session)) await new Promise<void>((resolve) => setImmediate(resolve));
  const words = query.match(/[\p{L}\p{M}\p{N}]+/gu)?.slice(0, 32) ?? [];
  if (words.length === 0) return [];
  // Every word is quoted: the query language of the index is not for people.
  const match = words.map((word, index) => (index === words.length - 1 ? `"${word}"*` : `"${word}"`)).join(' ');
  const rows = session.all<{ body: string }>(
    `select m.body from message_search s join messages m on m.rowid = s.message_rowid join chats c on c.id = m.chat_id
     where s.message_search match ? and s.world_id = ? and m.world_id = s.world_id and (m.branch = c.branch or exists (
       with recursive up(id, fork_seq) as (
         select parent, fork_seq from branches b where b.chat_id = c.id and b.id = c.branch and c.branch <> 0
         union all
         select b.parent, b.fork_seq from up join branches b on b.chat_id = c.id and b.id = up.id where up.id <> 0)
       select 1 from up where up.id = m.branch and up.fork_seq >= m.seq))
     order by rank limit ?`,
    `content : (${match})`,
    world,
    limit,
  );
  return rows.map((row) => toMessage(row.body)).filter((message) => message.content !== '');
}

/** Indexes the next messages; false when there are none left. */
function indexSlice(session: Session): boolean {
  return session.transaction(() => {
    const place = Number(session.one<{ value: string }>('select value from meta where key = ?', PLACE)?.value ?? '0');
    const rows = session.all<{ rowid: number; world_id: string; content: string }>(
      "select rowid, world_id, json_extract(body, '$.content') as content from messages where rowid > ? order by rowid limit ?",
      place,
      SLICE,
    );
    for (const row of rows) {
      session.run(
        'insert into message_search (rowid, content, world_id, message_rowid) values (?, ?, ?, ?)',
        row.rowid,
        row.content,
        row.world_id,
        row.rowid,
      );
    }
    const last = rows.at(-1)?.rowid;
    if (last === undefined) return false;
    session.run(
      'insert into meta (key, value) values (?, ?) on conflict (key) do update set value = excluded.value',
      PLACE,
      String(last),
    );
    return rows.length === SLICE;
  });
}

/** Takes what one message said out of the index; its row stays. For use inside a transaction. */
export function forgetMessage(session: Session, id: string): void {
  if (!session.one('select 1 from meta where key = ?', PLACE)) return;
  session.run('delete from message_search where rowid = (select rowid from messages where id = ?)', id);
}

type MessagesOf = 'chat_id = ?' | 'chat_id in (select id from chats where world_id = ?)';

/** Deletes messages and what the index has of them. For use inside a transaction. */
export function forgetMessages(session: Session, where: MessagesOf, id: string): void {
  const indexed = session.one('select 1 from meta where key = ?', PLACE) !== undefined;
  if (indexed) {
    session.run(`delete from message_search where message_rowid in (select rowid from messages where ${where})`, id);
  }
  session.run(`delete from messages where ${where}`, id);
  // A freed row number may come back: the index must not believe that it has it already.
  session.run(
    'update meta set value = min(cast(value as integer), (select coalesce(max(rowid), 0) from messages)) where key = ?',
    PLACE,
  );
}
