import type { ChatLedger, Counts, LimitNotice, MessageDraft, RouteDecision, RoutePlan } from '../../ports.ts';
import {
  EMPTY_ROUTING,
  type Message,
  type Routing,
  type Sender,
  type Turn,
  type WakeReason,
} from '../../protocol/entities.ts';
import type { AgentId, ChatId, MessageId, WorldId } from '../../protocol/ids.ts';
import { type ChatRow, iso, type TurnRow, toLedger, toTurn } from './rows.ts';
import type { Draft, Session } from './session.ts';

const SYSTEM: Sender = { kind: 'system', id: 'system', name: 'system' };
const PAIR_WINDOW_MS = 60_000;

/** One chat inside one transaction: collects messages, turns and events, and writes the chat's row once at the end. */
export interface ChatBook {
  readonly chat: ChatRow;
  readonly drafts: Draft[];
  ledger: ChatLedger;
  addMessage(draft: MessageDraft, routing: Routing, key: string | null): Message;
  addTurn(wake: NewTurn): Turn | null;
  /** Routes a message by a plan: the message, then the turns it wakes, then the notices of reached limits. */
  addRouted(
    draft: MessageDraft,
    plan: RoutePlan,
    key: string | null,
  ): { message: Message; routing: Routing; turns: Turn[] };
  addLimits(limits: readonly LimitNotice[]): void;
  /** Writes the chat's row. */
  close(): void;
}

export interface NewTurn {
  agentId: AgentId;
  messageId: MessageId;
  seq: number;
  reason: WakeReason;
  from: string;
  hop: number;
  n: number;
}

/** Opens the book on a row that was read in the same transaction. */
export function openBook(session: Session, chat: ChatRow): ChatBook {
  const { one, all, run, clock, ids } = session;
  const drafts: Draft[] = [];
  const now = clock.now();
  const created = iso(now);

  function addMessage(draft: MessageDraft, routing: Routing, key: string | null): Message {
    const seq = chat.next_seq;
    const message: Message = {
      ...draft,
      worldId: chat.world_id as WorldId,
      chatId: chat.id as ChatId,
      seq,
      parentId: chat.head as MessageId | null,
      routing,
      createdAt: created,
    };
    const body = JSON.stringify(message);
    run(
      'insert into messages (chat_id, seq, id, key, parent_id, branch, world_id, sender_kind, body) values (?, ?, ?, ?, ?, ?, ?, ?, ?)',
      chat.id,
      seq,
      message.id,
      key,
      chat.head,
      chat.branch,
      chat.world_id,
      draft.sender.kind,
      body,
    );
    chat.next_seq = seq + 1;
    chat.head = message.id;
    drafts.push({
      event: { type: 'message.created', chat: message.chatId, data: { message } },
      json: `{"message":${body}}`,
    });
    return message;
  }

  function addTurn(wake: NewTurn): Turn | null {
    const row = one<TurnRow>(
      `insert into turns (id, world_id, chat_id, agent_id, trigger_id, trigger_seq, n, reason, from_id, hop, ordinal, state, queued_at)
       values (@id, @world, @chat, @agent, @trigger, @seq, @n, @reason, @from, @hop,
         coalesce((select ordinal from turns where chat_id = @chat and agent_id = @agent order by trigger_seq desc, n desc limit 1), 0) + 1,
         'queued', @now)
       on conflict do nothing returning *`,
      {
        id: ids.make('t'),
        world: chat.world_id,
        chat: chat.id,
        agent: wake.agentId,
        trigger: wake.messageId,
        seq: wake.seq,
        n: wake.n,
        reason: wake.reason,
        from: wake.from,
        hop: wake.hop,
        now,
      },
    );
    if (!row) return null;
    const turn = toTurn(row);
    drafts.push({ event: { type: 'turn.queued', chat: turn.chatId, data: { turn } } });
    return turn;
  }

  function count(plan: RoutePlan, { kind, id: sender }: Sender): Counts {
    const turnsOf = new Map<string, number>();
    const pairOf = new Map<string, number>();
    // A human's message begins the count anew.
    if (kind === 'human') return { turnsOf, pairOf };
    for (const agent of plan.candidates) {
      if (plan.count.turns) {
        const row = one<{ n: number }>(
          'select count(*) as n from turns where chat_id = ? and agent_id = ? and trigger_seq >= ?',
          chat.id,
          agent,
          Math.max(1, chat.human_seq),
        );
        turnsOf.set(agent, row?.n ?? 0);
      }
      if (plan.count.pairs) {
        const rows = all<{ n: number }>(
          `select count(*) as n from turns where chat_id = @chat and agent_id = @agent and from_id = @sender
             and trigger_seq >= @since and queued_at > @after
           union all
           select count(*) as n from turns where chat_id = @chat and agent_id = @sender and from_id = @agent
             and trigger_seq >= @since and queued_at > @after`,
          { chat: chat.id, agent, sender, since: Math.max(1, chat.human_seq), after: now - PAIR_WINDOW_MS },
        );
        pairOf.set(
          agent,
          rows.reduce((sum, row) => sum + row.n, 0),
        );
      }
    }
    return { turnsOf, pairOf };
  }

  const book: ChatBook = {
    chat,
    drafts,
    ledger: toLedger(chat.ledger),
    addMessage,
    addTurn,
    addRouted(draft, plan, key) {
      const decision: RouteDecision = plan.decide(book.ledger, count(plan, draft.sender));
      const message = addMessage(draft, decision.routing, key);
      book.ledger = {
        ...decision.ledger,
        held: decision.ledger.held.map((held) =>
          held.messageId === message.id ? { ...held, seq: message.seq } : held,
        ),
      };
      const turns = decision.wakes.flatMap((wake) => {
        const turn = addTurn({
          agentId: wake.agentId,
          messageId: message.id,
          seq: message.seq,
          reason: wake.reason,
          from: draft.sender.id,
          hop: wake.hop,
          n: 0,
        });
        return turn ? [turn] : [];
      });
      book.addLimits(decision.limits);
      return { message, routing: decision.routing, turns };
    },
    addLimits(limits) {
      for (const limit of limits) {
        const more = {
          ...(limit.agentId === undefined ? {} : { agentId: limit.agentId }),
          ...(limit.unit === undefined ? {} : { unit: limit.unit }),
        };
        const message = addMessage(
          {
            id: ids.make('m') as MessageId,
            sender: SYSTEM,
            content: limit.text,
            notice: {
              kind: 'limit',
              limit: limit.limit,
              used: limit.used,
              max: limit.max,
              ...more,
              action: 'continue',
            },
            status: 'complete',
          },
          EMPTY_ROUTING,
          null,
        );
        drafts.push({
          event: {
            type: 'limit.reached',
            chat: message.chatId,
            data: { limit: limit.limit, used: limit.used, max: limit.max, ...more, messageId: message.id },
          },
        });
      }
    },
    close() {
      run(
        `update chats set title = ?, head = ?, branch = ?, rev = ?, next_seq = ?, human_seq = ?, ledger = ?, spent_tokens = ?,
           spent_usd = ?, granted_tokens = ?, granted_usd = ?, updated_at = ? where id = ?`,
        chat.title,
        chat.head,
        chat.branch,
        chat.rev,
        chat.next_seq,
        chat.human_seq,
        JSON.stringify(book.ledger),
        chat.spent_tokens,
        chat.spent_usd,
        chat.granted_tokens,
        chat.granted_usd,
        now,
        chat.id,
      );
      chat.updated_at = now;
    },
  };
  return book;
}
