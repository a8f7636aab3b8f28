import type { PageQuery } from '../../ports.ts';
import type { Message } from '../../protocol/entities.ts';
import { AppError } from '../../protocol/errors.ts';
import { toMessage } from './rows.ts';
import type { Session } from './session.ts';

/** A stretch of a path: the messages of one branch with `after` < seq <= `upTo`. */
export interface Segment {
  branch: number;
  after: number;
  upTo: number;
}

/** Where a chat's reads go. */
export interface BranchPaths {
  /** The active branch with what it grew from, newest segment first. */
  active(chat: string): readonly Segment[];
  /** The path that ends with a message. Throws AppError `not_found`. */
  upTo(chat: string, message: string): readonly Segment[];
  /** The active branch is another one now. */
  forget(chat: string): void;
}

export const PATH = `with recursive path(id, parent, fork_seq, up_to, depth) as (
    select id, parent, fork_seq, @upTo, 0 from branches where chat_id = @chat and id = @branch
    union all
    select b.id, b.parent, b.fork_seq, p.fork_seq, p.depth + 1
    from path p join branches b on b.chat_id = @chat and b.id = p.parent where p.id <> 0)
  select id, fork_seq, up_to from path order by depth`;
const RANGE = `select seq, body from messages indexed by messages_branch
  where chat_id = ? and branch = ? and seq > ? and seq <= ? order by seq`;
export const FORWARD = `${RANGE} limit ?`;
export const BACKWARD = `${RANGE} desc limit ?`;

const END = Number.MAX_SAFE_INTEGER;
const FIRST: readonly Segment[] = [{ branch: 0, after: 0, upTo: END }];
const MAX_KEPT = 5000;

/** The file is this process's alone, so that what is kept here cannot be changed behind its back. */
export function openBranchPaths({ one, all }: Session): BranchPaths {
  const kept = new Map<string, readonly Segment[]>();

  function pathOf(chat: string, branch: number, upTo: number): readonly Segment[] {
    if (branch === 0) return upTo === END ? FIRST : [{ branch: 0, after: 0, upTo }];
    return all<{ id: number; fork_seq: number; up_to: number }>(PATH, { chat, branch, upTo })
      .map((row) => ({ branch: row.id, after: row.fork_seq, upTo: row.up_to }))
      .filter((segment) => segment.upTo > segment.after);
  }

  return {
    active(chat) {
      const known = kept.get(chat);
      if (known) return known;
      const row = one<{ branch: number }>('select branch from chats where id = ?', chat);
      if (!row) return FIRST;
      const path = pathOf(chat, row.branch, END);
      if (kept.size >= MAX_KEPT) kept.clear();
      kept.set(chat, path);
      return path;
    },
    upTo(chat, message) {
      const row = one<{ branch: number; seq: number }>(
        'select branch, seq from messages where id = ? and chat_id = ?',
        message,
        chat,
      );
      if (!row) throw new AppError('not_found', `there is no message ${JSON.stringify(message)} in this chat`);
      return pathOf(chat, row.branch, row.seq);
    },
    forget(chat) {
      kept.delete(chat);
    },
  };
}

/** Whether a message lies on a path. */
export const isOnPath = (path: readonly Segment[], message: { branch: number; seq: number }): boolean =>
  path.some(({ branch, after, upTo }) => branch === message.branch && message.seq > after && message.seq <= upTo);

/**
 * One page of a path, ascending. Each segment is one range of an index, and no more of them are read than the page
 * needs: every segment but a chat's first has at least one message.
 */
export function readPath(
  { all }: Session,
  chat: string,
  path: readonly Segment[],
  page: Pick<PageQuery, 'before' | 'after' | 'limit'>,
): { messages: Message[]; next: number | null } {
  const { before = END, after = 0, limit } = page;
  const isForward = page.after !== undefined && page.before === undefined;
  const wanted = isForward ? limit : limit + 1;
  const rows: { seq: number; body: string }[] = [];
  for (const segment of isForward ? path.toReversed() : path) {
    if (segment.upTo <= after || segment.after >= before - 1) continue;
    rows.push(
      ...all<{ seq: number; body: string }>(
        isForward ? FORWARD : BACKWARD,
        chat,
        segment.branch,
        Math.max(segment.after, after),
        Math.min(segment.upTo, before - 1),
        wanted - rows.length,
      ),
    );
    if (rows.length >= wanted) break;
  }
  if (isForward) return { messages: rows.map((row) => toMessage(row.body)), next: null };
  const kept = rows.slice(0, limit).reverse();
  return {
    messages: kept.map((row) => toMessage(row.body)),
    next: rows.length > limit ? (kept[0]?.seq ?? null) : null,
  };
}
