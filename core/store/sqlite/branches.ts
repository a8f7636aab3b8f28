import { type Branched, type Branches, freshLedger } from '../../ports.ts';
import type { Message, Turn, WakeReason } from '../../protocol/entities.ts';
import { AppError } from '../../protocol/errors.ts';
import type { AgentId, ChatId, MessageId } from '../../protocol/ids.ts';
import type { Posted } from '../../protocol/requests.ts';
import { cancelPending } from './approvals.ts';
import { type BranchPaths, isOnPath } from './branch-paths.ts';
import { openBook } from './chat-book.ts';
import { copyPath } from './chat-copy.ts';
import { enqueueChat, findChat } from './chats-at-work.ts';
import { once, storeAnswer, storedAnswer } from './once.ts';
import { type ChatRow, iso, type TurnRow, toAgent, toChat, toMessage, toTurn } from './rows.ts';
import { forgetMessage } from './search.ts';
import { type Draft, OPEN, type Session } from './session.ts';

interface StoredMessage {
  branch: number;
  seq: number;
  message: Message;
}

/** A turn that is to be taken once more. */
interface Rewake {
  agentId: string;
  trigger: { id: MessageId; seq: number };
  reason: WakeReason;
  from: string;
  hop: number;
}

/** Branches: their rows, the active one of each chat, and what begins a new one. */
export function sqliteBranches(session: Session, paths: BranchPaths): Branches {
  const { one, all, run, clock, transaction, append } = session;
  const chatRow = (world: string, chat: string) => findChat(session, world, chat);
  const enqueue = (chat: ChatRow) => enqueueChat(session, chat.id, chat.world_id);

  function messageRow(chat: string, id: string): StoredMessage {
    const row = one<{ branch: number; seq: number; body: string }>(
      'select branch, seq, body from messages where id = ? and chat_id = ?',
      id,
      chat,
    );
    if (!row) throw new AppError('not_found', `there is no message ${JSON.stringify(id)} in this chat`);
    return { branch: row.branch, seq: row.seq, message: toMessage(row.body) };
  }
  function isActiveAgent(world: string, agent: string): boolean {
    const row = one<{ body: string }>('select body from agents where world_id = ? and id = ?', world, agent);
    return row !== undefined && toAgent(row.body).status === 'active';
  }
  const hasRunning = (chat: string): boolean =>
    one(
      `select 1 from turns indexed by turns_open where chat_id = ? and ${OPEN} and state = 'running' limit 1`,
      chat,
    ) !== undefined;

  /** Ends what has not begun to run; the reply of none of it may come to another branch. */
  function dropOpen(chat: ChatRow): Draft[] {
    const cancelled = cancelPending(session, 'chat_id = ?', chat.id);
    const error = JSON.stringify({ code: 'stopped', message: 'the chat went on from another message' });
    const stopped = all<TurnRow>(
      `update turns set state = 'stopped', error = ?, ended_at = ? where chat_id = ? and ${OPEN} and state <> 'running' returning *`,
      error,
      clock.now(),
      chat.id,
    );
    return [
      ...cancelled,
      ...stopped.map((row): Draft => {
        const turn = toTurn(row);
        return { event: { type: 'turn.stopped', chat: turn.chatId, data: { turn } } };
      }),
    ];
  }

  /** Leaves the active branch with its head kept, for another one. Limits count anew from the next message on. */
  function moveTo(row: ChatRow, branch: number, head: string | null): void {
    run(
      `insert into branches (chat_id, id, parent, fork_seq, head_id, created_at) values (?, 0, 0, 0, ?, ?)
       on conflict do nothing`,
      row.id,
      row.head,
      row.created_at,
    );
    run('update branches set head_id = ? where chat_id = ? and id = ?', row.head, row.id, row.branch);
    row.branch = branch;
    row.head = head;
    row.rev += 1;
    row.human_seq = row.next_seq;
    row.ledger = JSON.stringify(freshLedger());
  }
  /** Opens a branch after a message, or at the chat's beginning. The active branch is that one already where it ends there. */
  function forkAfter(row: ChatRow, id: MessageId | null): void {
    if (row.head === id) return;
    const at = id === null ? { branch: 0, seq: 0 } : messageRow(row.id, id);
    const last = one<{ id: number | null }>('select max(id) as id from branches where chat_id = ?', row.id);
    const branch = (last?.id ?? 0) + 1;
    moveTo(row, branch, id);
    run(
      'insert into branches (chat_id, id, parent, fork_seq, fork_message_id, head_id, created_at) values (?, ?, ?, ?, ?, ?, ?)',
      row.id,
      branch,
      at.branch,
      at.seq,
      id,
      id,
      clock.now(),
    );
  }
  const updated = (row: ChatRow): Draft => {
    const chat = toChat(row);
    return { event: { type: 'chat.updated', chat: chat.id, data: { chat } } };
  };
  /** A transaction that may change the active branch. */
  function moving<T>(chat: string, work: () => T): T {
    try {
      return transaction(work);
    } finally {
      paths.forget(chat);
    }
  }
  function nextNumber(chat: string, agent: string, seq: number): number {
    const last = one<{ n: number | null }>(
      'select max(n) as n from turns where chat_id = ? and agent_id = ? and trigger_seq = ?',
      chat,
      agent,
      seq,
    );
    return (last?.n ?? -1) + 1;
  }

  /** The turn that wrote a message; a copied message has none, but names what it answers. */
  function turnBehind(chat: string, { message }: StoredMessage): Rewake {
    const agentId = message.sender.id;
    const row =
      message.turnId === undefined
        ? undefined
        : one<TurnRow>('select * from turns where id = ? and chat_id = ?', message.turnId, chat);
    if (row) {
      const { trigger } = toTurn(row);
      return {
        agentId,
        trigger: { id: trigger.messageId, seq: trigger.seq },
        reason: trigger.reason,
        from: row.from_id,
        hop: row.hop,
      };
    }
    if (message.replyTo === undefined) {
      throw new AppError('conflict', 'it is not known what this message answers; say something new instead');
    }
    const { message: trigger } = messageRow(chat, message.replyTo);
    return {
      agentId,
      trigger,
      reason: trigger.routing.woke.find((woke) => woke.agentId === agentId)?.reason ?? 'forward',
      from: trigger.sender.id,
      hop: 0,
    };
  }
  /** Who is to be woken once more for a message, and after which message the new branch begins. */
  function rewakes(world: string, chat: string, stored: StoredMessage): { after: MessageId | null; wakes: Rewake[] } {
    const { message } = stored;
    const { kind, name } = message.sender;
    if (kind === 'agent') {
      const wake = turnBehind(chat, stored);
      if (!isActiveAgent(world, wake.agentId))
        throw new AppError('conflict', `${name} is muted or no longer in this world; it cannot answer again`);
      return { after: message.parentId, wakes: [wake] };
    }
    if (kind !== 'human' && kind !== 'world')
      throw new AppError('conflict', 'only what a person or an agent said can be answered again');
    const wakes = message.routing.woke
      .filter(({ agentId }) => isActiveAgent(world, agentId))
      .map(({ agentId, reason }) => ({ agentId, reason, trigger: message, from: message.sender.id, hop: 0 }));
    if (wakes.length === 0)
      throw new AppError(
        'conflict',
        'the message woke no agent that is still active; there is nothing to answer again',
      );
    return { after: message.id, wakes };
  }

  return {
    async branches(chat) {
      const row = one<ChatRow>('select * from chats where id = ?', chat);
      if (!row) return [];
      const rows = all<{ id: number; fork_message_id: string | null; head_id: string | null; created_at: number }>(
        'select id, fork_message_id, head_id, created_at from branches where chat_id = ? order by id',
        chat,
      );
      const known =
        rows.length > 0 ? rows : [{ id: 0, fork_message_id: null, head_id: null, created_at: row.created_at }];
      return known.map(({ id, fork_message_id, head_id, created_at }) => ({
        id: String(id),
        forkMessageId: fork_message_id as MessageId | null,
        headId: (id === row.branch ? row.head : head_id) as MessageId | null,
        createdAt: iso(created_at),
      }));
    },

    async switchBranch(world, chat, message) {
      return moving(chat, () => {
        const row = chatRow(world, chat);
        const stored = messageRow(chat, message);
        if (row.head === message) return { ok: true, changed: { value: toChat(row), events: [] } };
        const ending = one<{ id: number; head_id: string | null }>(
          'select id, head_id from branches where chat_id = ? and head_id = ? and id <> ? order by id desc limit 1',
          chat,
          message,
          row.branch,
        );
        if (!ending && isOnPath(paths.active(chat), stored))
          return { ok: true, changed: { value: toChat(row), events: [] } };
        const target =
          ending ??
          one<{ id: number; head_id: string | null }>(
            'select id, head_id from branches where chat_id = ? and id = ?',
            chat,
            stored.branch,
          );
        if (!target) throw new Error(`branch ${stored.branch} of chat ${chat} is missing`);
        if (hasRunning(chat)) return { ok: false, reason: 'running' };
        const drafts = dropOpen(row);
        moveTo(row, target.id, target.head_id);
        const book = openBook(session, row);
        book.close();
        return { ok: true, changed: { value: toChat(row), events: append(world, [...drafts, updated(row)]) } };
      });
    },

    async rewrite(world, chat, message, { draft, plan }, idem) {
      return moving(chat, () => {
        const known = storedAnswer<Posted>(session, idem);
        if (known) return { ok: true, changed: known };
        const row = chatRow(world, chat);
        const { message: before } = messageRow(chat, message);
        if (before.sender.kind !== 'human')
          throw new AppError('conflict', 'only what a person said can be edited; let an agent answer again instead');
        if (row.roster_rev !== plan.rosterRev) return { ok: false, reason: 'stale' };
        if (hasRunning(chat)) return { ok: false, reason: 'running' };
        const dropped = dropOpen(row);
        forkAfter(row, before.parentId);
        const book = openBook(session, row);
        book.drafts.push(...dropped, updated(row));
        const { message: said, routing, turns } = book.addRouted(draft, plan, null);
        row.human_seq = said.seq;
        book.close();
        if (turns.length > 0) enqueue(row);
        const value: Posted = { message: said, routing, turns: turns.map(({ id, agentId }) => ({ id, agentId })) };
        storeAnswer(session, idem, value);
        return { ok: true, changed: { value, events: append(world, book.drafts) } };
      });
    },

    async regenerate(world, chat, message, idem) {
      return moving(chat, (): Branched<{ turns: Turn[] }> => {
        const known = storedAnswer<{ turns: Turn[] }>(session, idem);
        if (known) return { ok: true, changed: known };
        const row = chatRow(world, chat);
        const { after, wakes } = rewakes(world, chat, messageRow(chat, message));
        if (hasRunning(chat)) return { ok: false, reason: 'running' };
        const dropped = dropOpen(row);
        forkAfter(row, after);
        const book = openBook(session, row);
        book.drafts.push(...dropped, updated(row));
        const turns = wakes.flatMap(({ agentId, trigger, ...wake }) => {
          const n = nextNumber(chat, agentId, trigger.seq);
          const turn = book.addTurn({
            ...wake,
            ...{ agentId: agentId as AgentId, messageId: trigger.id, seq: trigger.seq, n },
          });
          return turn ? [turn] : [];
        });
        book.ledger = { ...book.ledger, total: book.ledger.total + turns.length };
        book.close();
        enqueue(row);
        storeAnswer(session, idem, { turns });
        return { ok: true, changed: { value: { turns }, events: append(world, book.drafts) } };
      });
    },

    async retry(world, chat, turn, idem) {
      return once(session, idem, () => {
        const row = chatRow(world, chat);
        const old = one<TurnRow>('select * from turns where id = ? and chat_id = ?', turn, chat);
        if (!old) throw new AppError('not_found', `there is no turn ${JSON.stringify(turn)} in this chat`);
        if (old.state !== 'failed' && old.state !== 'stopped')
          throw new AppError('conflict', `the turn is ${old.state}; only a failed or stopped one can be tried again`);
        if (!isActiveAgent(world, old.agent_id))
          throw new AppError('conflict', `the agent ${old.agent_id} is muted or no longer in this world`);
        const n = nextNumber(chat, old.agent_id, old.trigger_seq);
        if (n !== old.n + 1) throw new AppError('conflict', 'the turn was tried again already; see the newer one');
        if (!isOnPath(paths.active(chat), messageRow(chat, old.trigger_id)))
          throw new AppError('conflict', 'the turn belongs to another branch; make that one active first');
        const book = openBook(session, row);
        const again = book.addTurn({
          agentId: old.agent_id as AgentId,
          messageId: old.trigger_id as MessageId,
          seq: old.trigger_seq,
          reason: old.reason as WakeReason,
          from: old.from_id,
          hop: old.hop,
          n,
        });
        if (!again) throw new Error('the next free number of a turn was taken inside its own transaction');
        enqueue(row);
        return { value: again, events: append(world, book.drafts) };
      });
    },

    async deleteMessage(world, chat, id) {
      return transaction(() => {
        chatRow(world, chat);
        const { message } = messageRow(chat, id);
        if (message.deleted) return { value: null, events: [] };
        run('update messages set body = ? where id = ?', JSON.stringify(blanked(message)), id);
        const events = all<{ seq: number; data: string }>(
          'select seq, data from events indexed by events_message where message_id = ? and world_id = ?',
          id,
          world,
        );
        for (const { seq, data } of events) {
          const event = JSON.parse(data) as { message: Message };
          const json = JSON.stringify({ ...event, message: blanked(event.message) });
          run('update events set data = ? where world_id = ? and seq = ?', json, world, seq);
        }
        // Its turn has ended, so that nothing reads the journal any more.
        if (message.turnId !== undefined) run('delete from turn_steps where turn_id = ?', message.turnId);
        forgetMessage(session, id);
        run('update chats set rev = rev + 1 where id = ?', chat);
        return {
          value: null,
          events: append(world, [
            { event: { type: 'message.deleted', chat: message.chatId, data: { id: message.id } } },
          ]),
        };
      });
    },

    async fork(world, chat, { id, messageId }, idem) {
      return once(session, idem, () => {
        const title = forkTitle(chatRow(world, chat).title);
        const now = clock.now();
        run(
          'insert into chats (id, world_id, title, ledger, created_at, updated_at) values (?, ?, ?, ?, ?, ?)',
          ...[id, world, title, JSON.stringify(freshLedger()), now, now],
        );
        const row = chatRow(world, id);
        copyPath(session, chat, paths.upTo(chat, messageId), row);
        row.human_seq = row.next_seq;
        openBook(session, row).close();
        const value = toChat(row);
        return {
          value,
          events: append(world, [{ event: { type: 'chat.created', chat: value.id as ChatId, data: { chat: value } } }]),
        };
      });
    },
  };
}

/** Without anything that was said; who spoke and when stays. */
function blanked({ reasoning: _reasoning, toolCalls: _calls, ...message }: Message): Message {
  const { woke } = message.routing;
  return { ...message, content: '', routing: { woke, ignored: [] }, deleted: true };
}

const MAX_TITLE = 200;
const forkTitle = (title: string): string => `Fork of ${title === '' ? 'a chat' : title}`.slice(0, MAX_TITLE);
