import type { Lease } from '../../ports.ts';
import { EMPTY_ROUTING, type Sender } from '../../protocol/entities.ts';
import type { StoredEvent } from '../../protocol/events.ts';
import type { MessageId } from '../../protocol/ids.ts';
import { openBook } from './chat-book.ts';
import { claimedChat } from './chats-at-work.ts';
import { type ChatRow, type TurnRow, toTurn } from './rows.ts';
import { type Draft, OPEN, type Session } from './session.ts';

const SYSTEM: Sender = { kind: 'system', id: 'system', name: 'system' };

/** What a start does with the turns that an earlier process left running. */
export function sqliteRecovery(session: Session): Lease {
  const { one, all, run, clock, ids, transaction, append } = session;

  /** Back into the queue, or failed where that has been tried too often. Answers whether it failed. */
  function recoverTurn(row: TurnRow, maxCrashes: number, drafts: Draft[]): boolean {
    if (row.crashes + 1 < maxCrashes) {
      const again = one<TurnRow>(
        "update turns set state = 'queued', crashes = crashes + 1 where id = ? returning *",
        row.id,
      );
      if (again)
        drafts.push({ event: { type: 'turn.queued', chat: toTurn(again).chatId, data: { turn: toTurn(again) } } });
      return false;
    }
    const error = {
      code: 'interrupted',
      message: `the server ended ${row.crashes + 1} times during this turn; it is not tried again`,
    };
    const ended = one<TurnRow>(
      "update turns set state = 'failed', error = ?, ended_at = ? where id = ? returning *",
      JSON.stringify(error),
      clock.now(),
      row.id,
    );
    const chat = one<ChatRow>('select * from chats where id = ?', row.chat_id);
    if (!ended || !chat) throw new Error(`turn ${row.id} or its chat is missing`);
    const turn = toTurn(ended);
    const book = openBook(session, chat);
    book.drafts.push({ event: { type: 'turn.failed', chat: turn.chatId, data: { turn } } });
    book.addMessage(
      {
        id: ids.make('m') as MessageId,
        sender: SYSTEM,
        content: `${row.agent_id} could not finish: ${error.message}.`,
        notice: { kind: 'turn_failed', turnId: turn.id, agentId: turn.agentId, error: error.code },
        status: 'complete',
      },
      EMPTY_ROUTING,
      null,
    );
    book.close();
    drafts.push(...book.drafts);
    return true;
  }

  return {
    async recover(maxCrashes) {
      return transaction(() => {
        run('update run_queue set owner = null where owner is not null');
        const running = all<TurnRow>(
          `select * from turns indexed by turns_open where ${OPEN} and state = 'running' order by world_id, chat_id, trigger_seq`,
        );
        const perWorld = new Map<string, Draft[]>();
        let failed = 0;
        for (const row of running) {
          const drafts = perWorld.get(row.world_id) ?? [];
          perWorld.set(row.world_id, drafts);
          if (recoverTurn(row, maxCrashes, drafts)) failed++;
        }
        run(
          `insert into run_queue (chat_id, world_id, ready_at)
           select distinct t.chat_id, t.world_id, ? from turns t indexed by turns_open join chats c on c.id = t.chat_id
           where t.${OPEN} and t.state = 'queued' and c.paused = 0 on conflict do nothing`,
          clock.now(),
        );
        const events: StoredEvent[] = [];
        for (const [world, drafts] of perWorld) events.push(...append(world, drafts));
        return { value: { requeued: running.length - failed, failed }, events };
      });
    },
    async reclaim(claim, maxCrashes) {
      return transaction(() => {
        claimedChat(session, claim);
        const drafts: Draft[] = [];
        const running = all<TurnRow>(
          `select * from turns indexed by turns_open where chat_id = ? and ${OPEN} and state = 'running'`,
          claim.chatId,
        );
        let failed = 0;
        for (const row of running) if (recoverTurn(row, maxCrashes, drafts)) failed++;
        return { value: { requeued: running.length - failed, failed }, events: append(claim.worldId, drafts) };
      });
    },
  };
}
