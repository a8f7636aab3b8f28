import type { Claim, Commit, Journal, Step, TurnQueue, TurnWork } from '../../ports.ts';
import { Fenced } from '../../ports.ts';
import { EMPTY_ROUTING, type WorldAgent } from '../../protocol/entities.ts';
import { AppError } from '../../protocol/errors.ts';
import type { ChatId, WorldId } from '../../protocol/ids.ts';
import type { Posted } from '../../protocol/requests.ts';
import { cancelPending } from './approvals.ts';
import { openBook } from './chat-book.ts';
import { claimedChat, enqueueChat, findChat } from './chats-at-work.ts';
import { once, storeAnswer, storedAnswer } from './once.ts';
import { type ChatRow, type TurnRow, toAgent, toChat, toTurn } from './rows.ts';
import { type Draft, OPEN, type Session } from './session.ts';
import { ADD_USED, addGrant, amountOf, countUsed, grantedSoFar, usedValues } from './spending.ts';

const MAX_SNAPSHOTS = 2000;
const START = `update turns set state = 'running', attempt = attempt + 1, started_at = ?,
  agent_rev = coalesce(agent_rev, (select rev from agents a where a.world_id = turns.world_id and a.id = turns.agent_id))`;

/** Turns: the queue, the journal, and the transactions that end one turn and begin the next. */
export function sqliteTurns(session: Session): TurnQueue & Journal & Commit {
  const { one, all, run, clock, transaction, append, snapshots } = session;
  const fenced = (claim: Claim) => claimedChat(session, claim);
  const chatRow = (world: string, chat: string) => findChat(session, world, chat);
  const enqueue = (chat: ChatRow) => enqueueChat(session, chat.id, chat.world_id);
  let lastFence: number | null = null;

  /** The agent as it was at a revision; never changes, so it is kept. */
  function snapshot(world: string, agent: string, rev: number): WorldAgent {
    const key = JSON.stringify([world, agent, rev]);
    const known = snapshots.get(key);
    if (known) return known;
    const row = one<{ body: string }>(
      'select body from agent_revisions where world_id = ? and agent_id = ? and rev = ?',
      world,
      agent,
      rev,
    );
    if (!row) throw new Error(`revision ${rev} of agent ${agent} in world ${world} is missing`);
    if (snapshots.size >= MAX_SNAPSHOTS) snapshots.clear();
    const body = toAgent(row.body);
    snapshots.set(key, body);
    return body;
  }

  /** Marks up to `n` queued turns running and adds their events. */
  function startNext(chat: ChatRow, n: number, drafts: Draft[]): TurnWork[] {
    if (n <= 0 || chat.paused) return [];
    const now = clock.now();
    const ready = all<{ id: string }>(
      `select t.id from turns t indexed by turns_open
       where t.chat_id = @chat and t.${OPEN} and t.state = 'queued' and t.not_before <= @now
         and not exists (
           select 1 from turns r indexed by turns_open_agent
           where r.chat_id = t.chat_id and r.agent_id = t.agent_id and r.${OPEN}
             and (r.state <> 'queued' or r.trigger_seq < t.trigger_seq or (r.trigger_seq = t.trigger_seq and r.n < t.n)))
       order by t.trigger_seq, t.queued_at limit @n`,
      { now, chat: chat.id, n },
    );
    const [first, ...more] = ready;
    if (!first) return [];
    // A hand-over starts one: an update over a list costs it three times as much.
    const rows =
      more.length === 0
        ? all<TurnRow>(`${START} where id = ? and state = 'queued' returning *`, now, first.id)
        : all<TurnRow>(
            `${START} where id in (select value from json_each(?)) and state = 'queued' returning *`,
            now,
            JSON.stringify(ready.map(({ id }) => id)),
          );
    rows.sort((a, b) => a.trigger_seq - b.trigger_seq || a.queued_at - b.queued_at);
    return rows.flatMap((row) => {
      const turn = toTurn(row);
      const agent = row.agent_rev === null ? null : snapshot(row.world_id, row.agent_id, row.agent_rev);
      if (agent?.status !== 'active') {
        const stopped = endTurn(row.id, 'stopped', {
          code: 'agent_removed',
          message: agent ? 'the agent was muted before its turn began' : 'the agent is no longer in this world',
        });
        drafts.push({ event: { type: 'turn.stopped', chat: turn.chatId, data: { turn: stopped } } });
        return [];
      }
      drafts.push({ event: { type: 'turn.started', chat: turn.chatId, data: { turn } } });
      return [
        {
          id: turn.id,
          worldId: turn.worldId,
          chatId: turn.chatId,
          agentId: turn.agentId,
          agent,
          trigger: turn.trigger,
          from: row.from_id,
          hop: row.hop,
          ordinal: row.ordinal,
          attempt: row.attempt,
          chatRev: chat.rev,
          usage: turn.usage,
        },
      ];
    });
  }
  function endTurn(id: string, state: 'stopped' | 'failed', error: { code: string; message: string }) {
    const row = one<TurnRow>(
      'update turns set state = ?, error = ?, ended_at = ? where id = ? returning *',
      state,
      JSON.stringify(error),
      clock.now(),
      id,
    );
    if (!row) throw new Error(`turn ${id} is missing`);
    return toTurn(row);
  }
  /** The next free number of (message, agent). */
  function nextNumber(chat: string, agent: string, seq: number): number {
    const last = one<{ n: number | null }>(
      'select max(n) as n from turns where chat_id = ? and agent_id = ? and trigger_seq = ?',
      chat,
      agent,
      seq,
    );
    return (last?.n ?? -1) + 1;
  }
  function stopAllQueued(chat: ChatRow, error: { code: string; message: string }): Draft[] {
    return all<TurnRow>(
      `update turns indexed by turns_open set state = 'stopped', error = ?, ended_at = ?
       where chat_id = ? and ${OPEN} and state <> 'running' returning *`,
      JSON.stringify(error),
      clock.now(),
      chat.id,
    ).map((row) => ({ event: { type: 'turn.stopped', chat: chat.id as ChatId, data: { turn: toTurn(row) } } }));
  }

  return {
    // ------------------------------------------------------------ the queue
    async claim(worker, n) {
      if (!one('select 1 from run_queue where owner is null limit 1')) return [];
      return transaction(() => {
        // Alone on the database, this process knows every fence since it has looked once.
        lastFence ??= one<{ fence: number }>('select coalesce(max(fence), 0) as fence from run_queue')?.fence ?? 0;
        lastFence++;
        return all<{ chat_id: string; world_id: string; fence: number }>(
          `update run_queue set owner = ?, fence = ? where chat_id in
             (select chat_id from run_queue where owner is null order by ready_at limit ?)
           returning chat_id, world_id, fence`,
          worker,
          lastFence,
          n,
        ).map((row) => ({
          worldId: row.world_id as WorldId,
          chatId: row.chat_id as ChatId,
          owner: worker,
          fence: BigInt(row.fence),
        }));
      });
    },
    async next(claim, n) {
      return transaction(() => {
        const drafts: Draft[] = [];
        const value = startNext(fenced(claim), n, drafts);
        return { value, events: append(claim.worldId, drafts) };
      });
    },
    async abandon(claim, turn, used) {
      transaction(() => {
        const chat = fenced(claim);
        run("update turns set state = 'queued' where id = ? and state = 'running'", turn);
        countUsed(session, chat, turn, used);
        append(chat.world_id, [], amountOf(used));
      });
    },
    async release(claim) {
      return transaction(() => {
        const chat = fenced(claim);
        if (
          one(
            `select 1 from turns indexed by turns_open where chat_id = ? and ${OPEN} and state = 'running' limit 1`,
            chat.id,
          )
        ) {
          return false;
        }
        const startable = one(
          `select 1 from turns t indexed by turns_open where t.chat_id = ? and t.${OPEN} and t.state = 'queued' and not exists (
             select 1 from turns r indexed by turns_open_agent
             where r.chat_id = t.chat_id and r.agent_id = t.agent_id and r.${OPEN} and r.state = 'waiting') limit 1`,
          chat.id,
        );
        if (startable && !chat.paused) return false;
        run('delete from run_queue where chat_id = ?', chat.id);
        return true;
      });
    },

    // ------------------------------------------------------------ the journal
    async steps(turn) {
      return all<{ step: string; status: Step['status']; result: string | null }>(
        'select step, status, result from turn_steps where turn_id = ?',
        turn,
      ).map((row) => ({
        name: row.step,
        status: row.status,
        result: row.result === null ? null : JSON.parse(row.result),
      }));
    },
    async begin(claim, turn, step, event) {
      return transaction(() => {
        fenced(claim);
        run("insert into turn_steps (turn_id, step, status) values (?, ?, 'started')", turn, step);
        return append(claim.worldId, event ? [{ event }] : []);
      });
    },
    async record(claim, turn, steps, used) {
      return transaction(() => {
        const chat = fenced(claim);
        // A turn that was stopped takes no result any more.
        if (!one("select 1 from turns where id = ? and state = 'running'", turn))
          throw new Fenced(`turn ${turn} has ended already`);
        if (used) countUsed(session, chat, turn, used);
        const drafts: Draft[] = [];
        for (const { step, result, event } of steps) {
          run(
            `insert into turn_steps (turn_id, step, status, result) values (?, ?, 'done', ?)
             on conflict (turn_id, step) do update set status = 'done', result = excluded.result where status = 'started'`,
            turn,
            step,
            JSON.stringify(result),
          );
          if (event) drafts.push({ event });
        }
        return append(claim.worldId, drafts, used ? amountOf(used) : undefined);
      });
    },

    // ------------------------------------------------------------ posting and ending
    async post(world, chat, input, idem) {
      return transaction(() => {
        const known = storedAnswer<Posted>(session, idem);
        if (known) return { ok: true, changed: known };
        const row = chatRow(world, chat);
        if (row.roster_rev !== input.plan.rosterRev) return { ok: false, reason: 'stale' };
        const book = openBook(session, row);
        const { message, routing, turns } = book.addRouted(input.draft, input.plan, null);
        if (input.fromHuman) row.human_seq = message.seq;
        if (input.title !== undefined && row.title === '') {
          row.title = input.title;
          book.drafts.push({ event: { type: 'chat.updated', chat: message.chatId, data: { chat: toChat(row) } } });
        }
        book.close();
        if (turns.length > 0) enqueue(row);
        const value: Posted = {
          message,
          routing,
          turns: turns.map((turn) => ({ id: turn.id, agentId: turn.agentId })),
        };
        storeAnswer(session, idem, value);
        return { ok: true, changed: { value, events: append(world, book.drafts) } };
      });
    },
    async commitTurn(claim, turn, outcome, used, start) {
      return transaction(() => {
        const chat = fenced(claim);
        if (outcome.state === 'done' && outcome.plan.rosterRev !== chat.roster_rev)
          return { ok: false, reason: 'stale' };
        const ended = one<TurnRow>(
          `update turns set state = ?, error = ?, ended_at = ?, ${ADD_USED} where id = ? and state = 'running' returning *`,
          outcome.state,
          'error' in outcome ? JSON.stringify(outcome.error) : null,
          clock.now(),
          ...usedValues(used),
          turn.id,
        );
        if (!ended) throw new Fenced(`turn ${turn.id} has ended already`);
        const spent = amountOf(used);
        chat.spent_tokens += spent.tokens;
        chat.spent_usd += spent.usd;
        const book = openBook(session, chat);
        const endEvent: Draft = {
          event: {
            type:
              outcome.state === 'failed' ? 'turn.failed' : outcome.state === 'stopped' ? 'turn.stopped' : 'turn.done',
            chat: turn.chatId,
            data: { turn: toTurn(ended) },
          },
        };
        if (outcome.state === 'done') {
          const before = book.drafts.length;
          book.addRouted(outcome.message, outcome.plan, `r:${turn.id}`);
          // After the reply and before the turns that it wakes: a client sees cause before effect.
          book.drafts.splice(before + 1, 0, endEvent);
        } else if (outcome.state === 'silent') {
          book.drafts.push(endEvent);
        } else {
          if (outcome.message) book.addMessage(outcome.message, EMPTY_ROUTING, `r:${turn.id}`);
          book.drafts.push(endEvent);
          if (outcome.notice) book.addMessage(outcome.notice, EMPTY_ROUTING, null);
          if (outcome.limits) book.addLimits(outcome.limits);
          const atBudget = outcome.atBudget?.(book.ledger);
          if (atBudget) {
            book.ledger = atBudget.ledger;
            book.addLimits(atBudget.limits);
          }
        }
        if (book.drafts.length > 1 || spent.tokens > 0 || 'atBudget' in outcome) book.close();
        const started = startNext(chat, start, book.drafts);
        return { ok: true, changed: { value: { started }, events: append(chat.world_id, book.drafts, spent) } };
      });
    },
    async wake(world, chat, wake, idem) {
      return once(session, idem, () => {
        const row = chatRow(world, chat);
        const agent = one<{ body: string }>(
          'select body from agents where world_id = ? and id = ?',
          world,
          wake.agentId,
        );
        if (!agent) throw new AppError('not_found', `there is no agent ${JSON.stringify(wake.agentId)} in this world`);
        const { name, status } = toAgent(agent.body);
        if (status !== 'active') throw new AppError('conflict', `${name} is muted; make it active first`);
        const trigger = one<{ seq: number; body: string }>(
          'select seq, body from messages where id = ? and chat_id = ?',
          wake.messageId,
          chat,
        );
        if (!trigger)
          throw new AppError('not_found', `there is no message ${JSON.stringify(wake.messageId)} in this chat`);
        const book = openBook(session, row);
        const turn = book.addTurn({
          agentId: wake.agentId,
          messageId: wake.messageId,
          seq: trigger.seq,
          reason: wake.reason,
          from: 'human',
          hop: 0,
          n: nextNumber(chat, wake.agentId, trigger.seq),
        });
        if (!turn) throw new Error('the next free number of a turn was taken inside its own transaction');
        enqueue(row);
        return { value: turn, events: append(world, book.drafts) };
      });
    },
    async continueChat(world, chat, grant) {
      return transaction(() => {
        const row = chatRow(world, chat);
        const book = openBook(session, row);
        const continued = grant(book.ledger, grantedSoFar(session, row));
        if (!continued) return null;
        book.ledger = continued.ledger;
        addGrant(session, row, continued.grant);
        const turns = continued.wakes.flatMap((held) => {
          // A budget holds back a turn that has begun: it gets the next number, as a retry does.
          const turn = book.addTurn({ ...held, n: held.budget ? nextNumber(chat, held.agentId, held.seq) : 0 });
          return turn ? [turn] : [];
        });
        book.close();
        if (turns.length > 0) enqueue(row);
        return { value: { turns }, events: append(world, book.drafts) };
      });
    },
    async dropQueued(world, chat) {
      return transaction(() => {
        const row = chatRow(world, chat);
        const turns = stopAllQueued(row, { code: 'stopped', message: 'stopped by a person' });
        const drafts = [...cancelPending(session, 'chat_id = ?', chat), ...turns];
        return { value: { dropped: turns.length }, events: append(world, drafts) };
      });
    },
  };
}
