import type { Approvals } from '../../ports.ts';
import { Fenced, MAX_PENDING_PER_AGENT } from '../../ports.ts';
import type { Approval, Grant, Rule } from '../../protocol/entities.ts';
import { AppError } from '../../protocol/errors.ts';
import type { ApprovalId, ChatId } from '../../protocol/ids.ts';
import { claimedChat, enqueueChat } from './chats-at-work.ts';
import { storeAnswer, storedAnswer } from './once.ts';
import { iso, type TurnRow, toTurn } from './rows.ts';
import type { Draft, Session } from './session.ts';

interface ApprovalRow {
  body: string;
  status: string;
  resolution: string | null;
}

const toApproval = (row: ApprovalRow): Approval => ({
  ...(JSON.parse(row.body) as Approval),
  status: row.status as Approval['status'],
  ...(row.resolution === null ? {} : { resolution: JSON.parse(row.resolution) as NonNullable<Approval['resolution']> }),
});

const EVENT = {
  answered: 'approval.answered',
  denied: 'approval.answered',
  expired: 'approval.expired',
  cancelled: 'approval.cancelled',
} as const;

/** Ends the pending approvals of a chat or of one turn, `cancelled`. For use inside a transaction. */
export function cancelPending(session: Session, where: 'chat_id = ?' | 'turn_id = ?', id: string): Draft[] {
  const resolution = { optionId: null, by: 'system', at: iso(session.clock.now()), reason: 'cancelled' };
  return session
    .all<ApprovalRow & { chat_id: string }>(
      `update approvals set status = 'cancelled', slot = null, resolution = ? where ${where} and status = 'pending'
       returning body, status, resolution, chat_id`,
      JSON.stringify(resolution),
      id,
    )
    .map((row) => ({
      event: { type: EVENT.cancelled, chat: row.chat_id as ChatId, data: { approval: toApproval(row) } },
    }));
}

/** Approvals, grants and rules: rows, decided by compare-and-set. */
export function sqliteApprovals(session: Session): Approvals {
  const { one, all, run, clock, ids, transaction, append } = session;
  const COLUMNS = 'body, status, resolution';

  return {
    async park(claim, { id: turn, agentId: agent }, asks) {
      return transaction(() => {
        const chat = claimedChat(session, claim);
        const pending =
          one<{ n: number }>(
            "select count(*) as n from approvals where world_id = ? and agent_id = ? and status = 'pending'",
            chat.world_id,
            agent,
          )?.n ?? 0;
        // One is always asked, so that a turn never waits for nothing.
        const asked = asks.slice(0, Math.max(1, MAX_PENDING_PER_AGENT - pending));
        const taken = asked.find(
          ({ question: { slot } }) =>
            slot !== undefined && one('select 1 from approvals where world_id = ? and slot = ?', chat.world_id, slot),
        );
        if (taken) return { ok: false, step: taken.step };
        const row = one<TurnRow>(
          "update turns set state = 'waiting' where id = ? and state = 'running' returning *",
          turn,
        );
        if (!row) throw new Fenced(`turn ${turn} has ended already`);
        const value = toTurn(row);
        const drafts: Draft[] = [];
        for (const ask of asked) {
          const slot = ask.question.slot ?? null;
          const approval: Approval = {
            id: ids.make('a') as ApprovalId,
            worldId: value.worldId,
            chatId: value.chatId,
            turnId: value.id,
            agentId: value.agentId,
            kind: ask.kind,
            title: ask.question.title,
            message: ask.question.message,
            questions: ask.questions,
            options: ask.questions[0]?.options ?? [],
            defaultOptionId: ask.defaultOptionId,
            ...(ask.tool === undefined ? {} : { tool: ask.tool }),
            ...(ask.args === undefined ? {} : { args: ask.args }),
            ...(ask.argsHash === undefined ? {} : { argsHash: ask.argsHash }),
            status: 'pending',
            createdAt: iso(clock.now()),
            ...(ask.expiresAtMs === undefined ? {} : { expiresAt: iso(ask.expiresAtMs) }),
          };
          run(
            `insert into approvals (id, world_id, chat_id, turn_id, step, agent_id, kind, status, args_hash, slot, body, created_at, expires_at)
             values (?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?)`,
            approval.id,
            row.world_id,
            row.chat_id,
            turn,
            ask.step,
            row.agent_id,
            ask.kind,
            ask.argsHash ?? null,
            slot,
            JSON.stringify(approval),
            clock.now(),
            ask.expiresAtMs ?? null,
          );
          drafts.push({ event: { type: 'approval.requested', chat: value.chatId, data: { approval } } });
        }
        drafts.push({ event: { type: 'turn.waiting', chat: value.chatId, data: { turn: value } } });
        return { ok: true, events: append(row.world_id, drafts) };
      });
    },
    async approvalsOf(turn) {
      return all<ApprovalRow & { step: string }>(
        `select ${COLUMNS}, step from approvals where turn_id = ? order by rowid`,
        turn,
      ).map((row) => ({ ...toApproval(row), step: row.step }));
    },
    async getApproval(world, id) {
      const row = one<ApprovalRow>(`select ${COLUMNS} from approvals where id = ? and world_id = ?`, id, world);
      return row ? toApproval(row) : null;
    },
    async listApprovals({ world, chat, status }, limit) {
      const wanted = [
        ...(world === undefined ? [] : ['world_id = @world']),
        ...(chat === undefined ? [] : ['chat_id = @chat']),
        ...(status === undefined ? [] : [status === 'pending' ? "status = 'pending'" : 'status = @status']),
      ];
      return all<ApprovalRow>(
        `select ${COLUMNS} from approvals ${wanted.length === 0 ? '' : `where ${wanted.join(' and ')}`} order by created_at, rowid limit @limit`,
        {
          limit,
          ...(world === undefined ? {} : { world }),
          ...(chat === undefined ? {} : { chat }),
          ...(status === undefined || status === 'pending' ? {} : { status }),
        },
      ).map(toApproval);
    },
    async decide(world, id, decision, idem) {
      return transaction(() => {
        const known = storedAnswer<Approval>(session, idem);
        if (known) return known;
        const keepSlot = decision.status === 'answered';
        const row = one<ApprovalRow & { turn_id: string; chat_id: string }>(
          `update approvals set status = ?, resolution = ?, slot = case when ? then slot else null end
           where id = ? and world_id = ? and status = 'pending' and (expires_at is null or (expires_at <= ?) = ?)
           returning ${COLUMNS}, turn_id, chat_id`,
          decision.status,
          JSON.stringify(decision.resolution),
          Number(keepSlot),
          id,
          world,
          clock.now(),
          Number(decision.status === 'expired'),
        );
        if (!row) return null;
        const value = toApproval(row);
        const drafts: Draft[] = [
          { event: { type: EVENT[decision.status], chat: value.chatId, data: { approval: value } } },
        ];
        if (decision.grant) {
          const grant: Grant = { ...decision.grant, createdAt: iso(clock.now()) };
          run(
            'insert into grants (id, world_id, chat_id, agent_id, tool, body, created_at) values (?, ?, ?, ?, ?, ?, ?)',
            grant.id,
            world,
            grant.chatId,
            grant.agentId,
            grant.tool,
            JSON.stringify(grant),
            clock.now(),
          );
        }
        if (!one("select 1 from approvals where turn_id = ? and status = 'pending'", row.turn_id)) {
          const turn = one<TurnRow>(
            "update turns set state = 'queued' where id = ? and state = 'waiting' returning *",
            row.turn_id,
          );
          if (turn) {
            drafts.push({ event: { type: 'turn.queued', chat: value.chatId, data: { turn: toTurn(turn) } } });
            enqueueChat(session, row.chat_id, world);
          }
        }
        storeAnswer(session, idem, value);
        return { value, events: append(world, drafts) };
      });
    },
    async releaseSlot(turn, step) {
      run('update approvals set slot = null where turn_id = ? and step = ? and slot is not null', turn, step);
    },
    async dueApprovals(nowMs) {
      const due = all<ApprovalRow>(
        `select ${COLUMNS} from approvals where status = 'pending' and expires_at <= ? order by expires_at limit 500`,
        nowMs,
      ).map(toApproval);
      const next = one<{ at: number | null }>(
        "select min(expires_at) as at from approvals where status = 'pending' and expires_at > ?",
        nowMs,
      );
      return { due, nextMs: next?.at ?? null };
    },
    async listGrants(world) {
      return all<{ body: string }>('select body from grants where world_id = ? order by created_at, rowid', world).map(
        (row) => JSON.parse(row.body) as Grant,
      );
    },
    async findGrant(world, want) {
      const rows = all<{ body: string }>(
        `select body from grants where world_id = ? and tool = ? and (chat_id is null or chat_id = ?)
           and (agent_id is null or agent_id = ?) and json_extract(body, '$.argsHash') = ? limit 1`,
        world,
        want.tool,
        want.chat,
        want.agent,
        want.argsHash,
      );
      return rows[0] ? (JSON.parse(rows[0].body) as Grant) : null;
    },
    async removeGrant(world, id) {
      return run('delete from grants where world_id = ? and id = ?', world, id) > 0;
    },
    async rules(world) {
      const row = one<{ rules: string }>('select rules from worlds where id = ?', world);
      if (!row) throw new AppError('not_found', `there is no world ${JSON.stringify(world)}`);
      return JSON.parse(row.rules) as Rule[];
    },
    async setRules(world, rules) {
      if (run('update worlds set rules = ? where id = ?', JSON.stringify(rules), world) === 0) {
        throw new AppError('not_found', `there is no world ${JSON.stringify(world)}`);
      }
    },
  };
}
