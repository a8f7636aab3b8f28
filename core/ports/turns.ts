/** Turns: queue, journal, commit, lease. */
import type { Turn, Usage, WakeReason, WorldAgent } from '../protocol/entities.ts';
import type { EventDraft, StoredEvent } from '../protocol/events.ts';
import type { AgentId, ChatId, MessageId, TurnId, WorldId } from '../protocol/ids.ts';
import type { Posted } from '../protocol/requests.ts';
import type {
  Changed,
  ChatLedger,
  HeldWake,
  Idempotency,
  LimitNotice,
  MessageDraft,
  Planned,
  RoutePlan,
} from './changing.ts';
import type { Amount } from './reading.ts';

export interface Claim {
  worldId: WorldId;
  chatId: ChatId;
  owner: string;
  fence: bigint;
}

/** A turn that its owner runs. */
export interface TurnWork {
  id: TurnId;
  worldId: WorldId;
  chatId: ChatId;
  agentId: AgentId;
  /** The agent as it was when the turn started; it keeps it across restarts. */
  agent: WorldAgent;
  trigger: { messageId: MessageId; seq: number; reason: WakeReason };
  /** Id of who woke it. */
  from: string;
  /** Length of the chain of agent messages that led here; a human's message starts at 0. */
  hop: number;
  /** How many turns this agent has had in this chat, this one included. */
  ordinal: number;
  /** 1 for the first execution; more after a crash or an answered question, which then have a journal. */
  attempt: number;
  /** Of the chat when the turn started: another one makes void what was read before. */
  chatRev: number;
  /** What earlier executions used. */
  usage: Usage;
}

export interface TurnQueue {
  /** Takes up to `n` chats that have runnable work and no owner. */
  claim(worker: string, n: number): Promise<Claim[]>;
  /**
   * Starts up to `n` queued turns of the chat, oldest first, skipping agents that have one running or waiting;
   * none while the chat is paused. Turns of agents that are gone or inactive end `stopped` on the way.
   */
  next(claim: Claim, n: number): Promise<Changed<TurnWork[]>>;
  /**
   * Puts a running turn back into the queue, as if this execution had not been; for a worker that shuts down. What it
   * used is counted all the same.
   */
  abandon(claim: Claim, turn: TurnId, used: Usage): Promise<void>;
  /** Gives the chat back; false while it has a turn that could start or is running. */
  release(claim: Claim): Promise<boolean>;
}

export interface Step {
  name: string;
  status: 'started' | 'done';
  result: unknown;
}

/** A finished step; `event` goes into the log in the same transaction. */
export interface StepRecord {
  step: string;
  result: unknown;
  event?: EventDraft;
}

export interface Journal {
  steps(turn: TurnId): Promise<Step[]>;
  /** Written before a step with side effects, with the event that tells of it. */
  begin(claim: Claim, turn: TurnId, step: string, event?: EventDraft): Promise<readonly StoredEvent[]>;
  /**
   * Several finished steps in one transaction. A step that is done already keeps its first result. `used` is added to
   * the turn, its chat and its world.
   */
  record(claim: Claim, turn: TurnId, steps: readonly StepRecord[], used?: Usage): Promise<readonly StoredEvent[]>;
}

/** How a turn ends. */
export type TurnOutcome =
  | { state: 'done'; message: MessageDraft; plan: RoutePlan }
  | { state: 'silent' }
  /** `message`: text streamed before the failure or stop; it routes nowhere. */
  | {
      state: 'failed' | 'stopped';
      error: { code: string; message: string };
      message?: MessageDraft;
      notice?: MessageDraft;
      limits?: readonly LimitNotice[];
      /** For a budget that was reached: pure; what the ledger becomes and what the room is told. */
      atBudget?: (ledger: ChatLedger) => { ledger: ChatLedger; limits: readonly LimitNotice[] };
    };

export interface Commit {
  /** A message of a human, the world or the system, its receipt and its turns. */
  post(
    world: string,
    chat: string,
    input: { draft: MessageDraft; plan: RoutePlan; fromHuman: boolean; title?: string },
    idem?: Idempotency,
  ): Promise<Planned<Posted>>;
  /**
   * Fence check, reply, turn's end, events and next turns in ONE transaction. Up to `start` of the chat's
   * queued turns are started in it too, as `next` would. `used` is what no earlier transaction has counted; it is
   * added to the turn, its chat and its world.
   */
  commitTurn(
    claim: Claim,
    turn: TurnWork,
    outcome: TurnOutcome,
    used: Usage,
    start: number,
  ): Promise<Planned<{ started: TurnWork[] }>>;
  /**
   * Wakes one active agent for a stored message, outside routing. Takes the next free number of (message, agent).
   * Throws AppError `not_found`, or `conflict` for an inactive agent; a repeated call gets its first answer all the same.
   */
  wake(
    world: string,
    chat: string,
    wake: { messageId: MessageId; agentId: AgentId; reason: WakeReason },
    idem?: Idempotency,
  ): Promise<Changed<Turn>>;
  /**
   * Goes on after a limit: `grant` is pure and says what the ledger becomes, which held wakes are queued and what is
   * added to the budgets; null where nothing is held.
   */
  continueChat(
    world: string,
    chat: string,
    grant: (ledger: ChatLedger, granted: Granted) => Continued | null,
  ): Promise<Changed<{ turns: Turn[] }> | null>;
  /** Ends every queued and waiting turn of the chat `stopped` and its pending approvals `cancelled`; running ones are the caller's. */
  dropQueued(world: string, chat: string): Promise<Changed<{ dropped: number }>>;
}

/** What `continue` has added to a chat's and its world's budget. */
export interface Granted {
  chat: Amount;
  world: Amount;
}

export interface Continued {
  ledger: ChatLedger;
  wakes: readonly HeldWake[];
  grant: Granted;
}

/** The claim is no longer this worker's, or the turn has ended: what it did since is refused. */
export class Fenced extends Error {
  override readonly name = 'Fenced';
}

export interface Lease {
  /** Voids claims of earlier processes; running turns go back to the queue, or end failed at the given number of crashes. */
  recover(maxCrashes: number): Promise<Changed<{ requeued: number; failed: number }>>;
  /** The same for one claimed chat whose owner runs none of its turns: what stands as running was lost by a fault. */
  reclaim(claim: Claim, maxCrashes: number): Promise<Changed<{ requeued: number; failed: number }>>;
}
