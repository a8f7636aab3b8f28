import type { Claim, LiveText } from '../ports.ts';
import { type ChatRunner, type RunnerDeps, startRunner } from './chat-runner.ts';
import { openSlots } from './slots.ts';

/** At most this many chats are claimed by one statement. */
const CLAIM_BATCH = 16;
/** Chats of one process at a time; more of them wait in the store, not in memory. */
const MAX_CHATS = 2048;
/** Turns of one process at a time, over all chats. */
export const DEFAULT_PROCESS_TURNS = 256;

/** Claims chats that have work and runs them. One per process; it holds nothing that the store does not have too. */
export interface Engine {
  /** A chat has new work. */
  wake(chat: string): void;
  /** Aborts the running turns of a chat and, when they have ended, runs `settle`; no turn starts before that is done. */
  abort(chat: string, settle?: () => Promise<void>): Promise<void>;
  liveText(world: string, chat?: string): LiveText[];
  /** Stops claiming; running turns go back to the queue. */
  close(): Promise<void>;
}

export function startEngine(deps: RunnerDeps & { worker: string; processTurns: number }): Engine {
  const { store, log } = deps;
  const slots = openSlots(deps.processTurns);
  const runners = new Map<string, ChatRunner>();
  let closed = false;
  let wanted = false;
  let pumping: Promise<void> | null = null;

  function run(claim: Claim): void {
    const runner = startRunner(deps, claim, slots);
    runners.set(claim.chatId, runner);
    const ended = runner.done.then(() => {
      if (runners.get(claim.chatId) === runner) runners.delete(claim.chatId);
      // Work may have arrived between the release and this line.
      pump();
    });
    inBackground(ended);
  }

  async function claimAll(): Promise<void> {
    do {
      wanted = false;
      for (;;) {
        if (closed || runners.size >= MAX_CHATS) return;
        const claims = await store.claim(deps.worker, CLAIM_BATCH);
        for (const claim of claims) run(claim);
        if (claims.length < CLAIM_BATCH) break;
      }
    } while (wanted);
  }

  function pump(): void {
    wanted = true;
    if (pumping || closed) return;
    pumping = claimAll().finally(() => {
      pumping = null;
      if (wanted && !closed) pump();
    });
    inBackground(pumping);
  }

  /** The one place for promises that nobody awaits. */
  function inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => log.error({ err: error }, 'background work failed'));
  }

  pump();
  return {
    wake(chat) {
      runners.get(chat)?.poke();
      pump();
    },
    async abort(chat, settle) {
      const runner = runners.get(chat);
      if (runner) await runner.abortAll('stopped', settle);
      else await settle?.();
    },
    liveText(world, chat) {
      const live: LiveText[] = [];
      for (const runner of runners.values()) {
        if (runner.claim.worldId !== world || (chat !== undefined && runner.claim.chatId !== chat)) continue;
        for (const entry of runner.live()) {
          live.push({
            chat: entry.turn.chatId,
            turnId: entry.turn.id,
            agentId: entry.turn.agentId,
            ...entry.state(),
            text: entry.text(),
            reasoning: entry.reasoning(),
          });
        }
      }
      return live;
    },
    async close() {
      closed = true;
      await pumping;
      await Promise.all(
        [...runners.values()].map(async (runner) => {
          await runner.abortAll('shutdown');
          await runner.done;
        }),
      );
    },
  };
}
