import { type Changed, freshLedger, type Mutations } from '../../ports.ts';
import type { World, WorldAgent } from '../../protocol/entities.ts';
import { AppError } from '../../protocol/errors.ts';
import type { AgentId, TurnId } from '../../protocol/ids.ts';
import { cancelPending } from './approvals.ts';
import { findChat } from './chats-at-work.ts';
import { once } from './once.ts';
import { type ChatRow, iso, type TurnRow, toAgent, toChat, toTurn, toWorld, type WorldRow } from './rows.ts';
import { forgetMessages } from './search.ts';
import { type Draft, OPEN, type Session } from './session.ts';

/** What is left of the events of a deleted chat: that they were, not what was said, asked or called. */
const BLANKED: readonly (readonly [types: string, json: string])[] = [
  [
    "'message.created', 'message.updated'",
    "json_set(json_remove(data, '$.message.reasoning', '$.message.toolCalls'), '$.message.content', '')",
  ],
  ["'chat.created', 'chat.updated'", "json_set(data, '$.chat.title', '')"],
  ["'tool.started'", "json_set(data, '$.args', json('{}'))"],
  ["'tool.finished'", "json_set(data, '$.summary', '')"],
  [
    "'approval.requested', 'approval.answered', 'approval.expired', 'approval.cancelled'",
    "json_set(json_remove(data, '$.approval.args', '$.approval.resolution.text', '$.approval.resolution.answers'), '$.approval.title', '', '$.approval.message', '')",
  ],
];

/** Worlds, agents and chats: each change with its event in one transaction. */
export function sqliteMutations(session: Session): Mutations {
  const { one, all, run, clock, transaction, append } = session;
  const chatRow = (world: string, chat: string): ChatRow => findChat(session, world, chat);

  function worldRow(world: string): WorldRow {
    const row = one<WorldRow>('select * from worlds where id = ?', world);
    if (!row) throw new AppError('not_found', `there is no world ${JSON.stringify(world)}`);
    return row;
  }
  function agentRow(world: string, agent: string): { body: string; rev: number } {
    worldRow(world);
    const row = one<{ body: string; rev: number }>(
      'select body, rev from agents where world_id = ? and id = ?',
      world,
      agent,
    );
    if (!row)
      throw new AppError(
        'not_found',
        `there is no agent ${JSON.stringify(agent)} in the world ${JSON.stringify(world)}`,
      );
    return row;
  }
  function raiseRoster(world: string): number {
    const row = one<{ roster_rev: number }>(
      'update worlds set roster_rev = roster_rev + 1 where id = ? returning roster_rev',
      world,
    );
    if (!row) throw new AppError('not_found', `there is no world ${JSON.stringify(world)}`);
    return row.roster_rev;
  }
  function writeRevision(world: string, agent: WorldAgent, rev: number): void {
    run(
      'insert into agent_revisions (world_id, agent_id, rev, body) values (?, ?, ?, ?)',
      world,
      agent.id,
      rev,
      JSON.stringify(agent),
    );
  }
  /** Ends the queued and waiting turns of an agent that can no longer be woken, and what it has asked. */
  function stopQueued(world: string, agent: string): Draft[] {
    const error = JSON.stringify({
      code: 'agent_removed',
      message: 'the agent was removed or muted before its turn ended',
    });
    return all<TurnRow>(
      `update turns indexed by turns_open set state = 'stopped', error = ?, ended_at = ?
       where world_id = ? and agent_id = ? and ${OPEN} and state <> 'running' returning *`,
      error,
      clock.now(),
      world,
      agent,
    ).flatMap((row) => [
      ...cancelPending(session, 'turn_id = ?', row.id),
      { event: { type: 'turn.stopped', chat: toTurn(row).chatId, data: { turn: toTurn(row) } } },
    ]);
  }

  return {
    async createWorld(id, settings, idem) {
      return once(session, idem, () => {
        if (one('select 1 from worlds where id = ?', id)) {
          throw new AppError(
            'world_exists',
            `there is already a world with the id ${JSON.stringify(id)}; choose another name`,
          );
        }
        const now = clock.now();
        run(
          'insert into worlds (id, settings, next_seq, roster_rev, created_at, updated_at) values (?, ?, 1, 1, ?, ?)',
          id,
          JSON.stringify(settings),
          now,
          now,
        );
        const world: World = { ...settings, id, createdAt: iso(now), updatedAt: iso(now) };
        return { value: world, events: [] };
      });
    },
    async patchWorld(world, patch) {
      return transaction(() => {
        const before = toWorld(worldRow(world));
        const now = clock.now();
        const { id, createdAt, updatedAt: _, ...settings } = { ...before, ...patch };
        run('update worlds set settings = ?, updated_at = ? where id = ?', JSON.stringify(settings), now, world);
        raiseRoster(world);
        const value: World = { ...settings, id, createdAt, updatedAt: iso(now) };
        return { value, events: append(world, [{ event: { type: 'world.updated', data: { world: value } } }]) };
      });
    },
    async deleteWorld(world) {
      return transaction(() => {
        worldRow(world);
        // The last event is for those who listen now: the log goes with its world.
        const events = append(world, [{ event: { type: 'world.deleted', data: { id: toWorld(worldRow(world)).id } } }]);
        forgetMessages(session, 'chat_id in (select id from chats where world_id = ?)', world);
        run('delete from turn_steps where turn_id in (select id from turns where world_id = ?)', world);
        run('delete from branches where chat_id in (select id from chats where world_id = ?)', world);
        for (const table of [
          'turns',
          'chats',
          'agents',
          'agent_revisions',
          'events',
          'run_queue',
          'approvals',
          'grants',
          'runs',
          'tasks',
        ]) {
          run(`delete from ${table} where world_id = ?`, world);
        }
        run('delete from idempotency_keys where instr(scope, ?) > 0', `,${JSON.stringify(world)}`);
        run('delete from worlds where id = ?', world);
        session.snapshots.clear();
        return { value: null, events };
      });
    },
    async createAgent(world, agent, idem) {
      return once(session, idem, () => {
        worldRow(world);
        const taken = one<{ body: string }>(
          'select body from agents where world_id = ? and fold = ?',
          world,
          agent.fold,
        );
        if (taken) {
          const other = toAgent(taken.body);
          throw new AppError(
            'agent_exists',
            `the name ${JSON.stringify(agent.settings.name)} gives the id of the agent ${JSON.stringify(other.name)} (${other.id}); choose another name`,
          );
        }
        const rev = raiseRoster(world);
        const now = iso(clock.now());
        const value: WorldAgent = {
          ...agent.settings,
          id: agent.id,
          source: agent.source,
          ...(agent.createdBy === undefined ? {} : { createdBy: agent.createdBy }),
          ...(agent.ceiling === undefined ? {} : { ceiling: agent.ceiling }),
          createdAt: now,
          updatedAt: now,
        };
        run(
          'insert into agents (world_id, id, fold, position, rev, body) values (?, ?, ?, (select coalesce(max(position), 0) + 1 from agents where world_id = ?), ?, ?)',
          world,
          agent.id,
          agent.fold,
          world,
          rev,
          JSON.stringify(value),
        );
        writeRevision(world, value, rev);
        return { value, events: append(world, [{ event: { type: 'agent.created', data: { agent: value } } }]) };
      });
    },
    async patchAgent(world, agent, patch) {
      return transaction(() => {
        const before = toAgent(agentRow(world, agent).body);
        const rev = raiseRoster(world);
        const value: WorldAgent = { ...before, ...patch, updatedAt: iso(clock.now()) };
        run(
          'update agents set rev = ?, body = ? where world_id = ? and id = ?',
          rev,
          JSON.stringify(value),
          world,
          agent,
        );
        writeRevision(world, value, rev);
        const drafts: Draft[] = [{ event: { type: 'agent.updated', data: { agent: value } } }];
        if (value.status === 'inactive') drafts.push(...stopQueued(world, agent));
        return { value, events: append(world, drafts) };
      });
    },
    async removeAgent(world, agent) {
      return transaction(() => {
        agentRow(world, agent);
        raiseRoster(world);
        run('delete from agents where world_id = ? and id = ?', world, agent);
        const drafts: Draft[] = [
          { event: { type: 'agent.removed', data: { id: agent as AgentId } } },
          ...stopQueued(world, agent),
        ];
        return { value: null, events: append(world, drafts) };
      });
    },
    async createChat(world, chat, idem) {
      return once(session, idem, () => {
        worldRow(world);
        const now = clock.now();
        const row: ChatRow = {
          id: chat.id,
          world_id: world,
          title: chat.title,
          head: null,
          parent_chat_id: chat.parentChatId ?? null,
          paused: 0,
          next_seq: 1,
          human_seq: 0,
          ledger: JSON.stringify(freshLedger()),
          branch: 0,
          rev: 0,
          spent_tokens: 0,
          spent_usd: 0,
          granted_tokens: 0,
          granted_usd: 0,
          created_at: now,
          updated_at: now,
        };
        run(
          'insert into chats (id, world_id, title, parent_chat_id, ledger, created_at, updated_at) values (?, ?, ?, ?, ?, ?, ?)',
          row.id,
          world,
          row.title,
          row.parent_chat_id,
          row.ledger,
          now,
          now,
        );
        const value = toChat(row);
        return {
          value,
          events: append(world, [{ event: { type: 'chat.created', chat: chat.id, data: { chat: value } } }]),
        };
      });
    },
    async patchChat(world, chat, patch) {
      return transaction(() => {
        const row = chatRow(world, chat);
        row.title = patch.title ?? row.title;
        row.paused = patch.paused === undefined ? row.paused : Number(patch.paused);
        row.updated_at = clock.now();
        run(
          'update chats set title = ?, paused = ?, updated_at = ? where id = ?',
          row.title,
          row.paused,
          row.updated_at,
          chat,
        );
        if (patch.paused === false) {
          run(
            `insert into run_queue (chat_id, world_id, ready_at) select @chat, @world, @now
             where exists (select 1 from turns indexed by turns_open where chat_id = @chat and ${OPEN} and state = 'queued')
             on conflict do nothing`,
            { chat, world, now: row.updated_at },
          );
        }
        const value = toChat(row);
        return {
          value,
          events: append(world, [{ event: { type: 'chat.updated', chat: value.id, data: { chat: value } } }]),
        };
      });
    },
    async deleteChat(world, chat): Promise<Changed<null>> {
      return transaction(() => {
        const id = toChat(chatRow(world, chat)).id;
        const stopped = all<{ id: TurnId }>('select id from turns where chat_id = ?', chat);
        for (const turn of stopped) run('delete from turn_steps where turn_id = ?', turn.id);
        // Turns stay: the world's usage is what was spent. The events stay too, without what was said.
        run(
          `update turns indexed by turns_open set state = 'stopped', ended_at = ? where chat_id = ? and ${OPEN}`,
          clock.now(),
          chat,
        );
        for (const [types, blanked] of BLANKED) {
          run(
            `update events set data = ${blanked} where chat_id = ? and world_id = ? and type in (${types})`,
            chat,
            world,
          );
        }
        // The stored answers of calls with a key hold what was posted.
        run('delete from idempotency_keys where instr(scope, ?) > 0', `,${JSON.stringify(chat)}`);
        run('delete from approvals where chat_id = ?', chat);
        run('delete from grants where chat_id = ?', chat);
        forgetMessages(session, 'chat_id = ?', chat);
        run('delete from run_queue where chat_id = ?', chat);
        run('delete from branches where chat_id = ?', chat);
        run('delete from chats where id = ?', chat);
        return { value: null, events: append(world, [{ event: { type: 'chat.deleted', chat: id, data: { id } } }]) };
      });
    },
  };
}
