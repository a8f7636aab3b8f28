/** Tools and approvals. */
import type { Approval, ApprovalKind, Grant, Question, Resolution, Rule, WorldAgent } from '../protocol/entities.ts';
import type { StoredEvent } from '../protocol/events.ts';
import type { ChatId, TurnId, WorldId } from '../protocol/ids.ts';
import type { Changed, Idempotency } from './changing.ts';
import type { Claim, TurnWork } from './turns.ts';

/** What a running tool call may know and do. Nothing of it is shared between calls. */
export interface ToolContext {
  worldId: WorldId;
  chatId: ChatId;
  turnId: TurnId;
  agent: WorldAgent;
  /** `turn#step`: the same after a crash, for tools that honour an idempotency key. */
  key: string;
  signal: AbortSignal;
  /** The tools that the calling agent may use, by name. */
  effective: readonly string[];
}

export interface ToolResult {
  content: string;
  isError: boolean;
}

/** What an approval shows: the real effect. */
export interface ToolQuestion {
  title: string;
  message: string;
  /** For `ask_user`; a tool's own question is yes or no. */
  questions?: Question[];
  /** Held until the call has ended, so that nobody else asks for the same thing. */
  slot?: string;
}

/** A tool as the world uses it. Arguments come parsed; what was approved runs as it was shown. */
export interface Tool {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>;
  /** `write` has side effects: after a crash in the middle it never runs again without a person's word. */
  effect: 'read' | 'write';
  /** A `write` that honours `context.key`: run twice it acts once. */
  isRepeatable?: true;
  /** `always` asks in every permission mode and no rule or grant can answer; `question` is answered by its resolution. */
  asks: 'by-permission' | 'always' | 'question';
  /** Canonical arguments, or what is wrong with them, for the model. Never changes its input. */
  parse(args: Record<string, unknown>): { ok: true; args: Record<string, unknown> } | { ok: false; result: ToolResult };
  /** May refuse before anybody is asked. */
  describe(
    args: Record<string, unknown>,
    context: ToolContext,
  ): Promise<{ ok: true; question: ToolQuestion } | { ok: false; result: ToolResult }>;
  run(args: Record<string, unknown>, context: ToolContext): Promise<ToolResult>;
  /** The result where another request holds the slot. */
  slotTaken?(args: Record<string, unknown>): ToolResult;
  /** The result of a call that was not allowed. */
  denied?(
    args: Record<string, unknown>,
    reason: 'user_denied' | 'timeout' | 'cancelled' | 'approval_unavailable',
    text?: string,
  ): ToolResult;
}

/** A question to a person, to be written in the transaction that parks the turn. */
export interface ApprovalDraft {
  step: string;
  kind: ApprovalKind;
  question: ToolQuestion;
  questions: Question[];
  defaultOptionId: string | null;
  tool?: string;
  args?: Record<string, unknown>;
  argsHash?: string;
  expiresAtMs?: number;
}

/** At most this many approvals of one agent wait at a time. */
export const MAX_PENDING_PER_AGENT = 3;

export interface Approvals {
  /**
   * Writes the questions (as many as the agent may still have pending) and parks the turn, in ONE transaction.
   * `slot_taken`: another request holds the slot of that step; nothing was written.
   */
  park(
    claim: Claim,
    turn: Pick<TurnWork, 'id' | 'agentId'>,
    asks: readonly ApprovalDraft[],
  ): Promise<{ ok: true; events: readonly StoredEvent[] } | { ok: false; step: string }>;
  approvalsOf(turn: TurnId): Promise<(Approval & { step: string })[]>;
  getApproval(world: string, id: string): Promise<Approval | null>;
  /** Oldest first; of every world where none is given. */
  listApprovals(
    filter: { world?: string; chat?: string; status?: Approval['status'] },
    limit: number,
  ): Promise<Approval[]>;
  /**
   * The first decision wins, by compare-and-set; the turn is queued when none of its approvals is pending.
   * Null: it is no longer pending, or its time is over (then only `expired` ends it; before, only the others do). A repeated call gets its first answer and changes nothing.
   */
  decide(
    world: string,
    id: string,
    decision: { status: 'answered' | 'denied' | 'expired'; resolution: Resolution; grant?: Omit<Grant, 'createdAt'> },
    idem?: Idempotency,
  ): Promise<Changed<Approval> | null>;
  /** Gives a slot back: the call that held it has ended. */
  releaseSlot(turn: TurnId, step: string): Promise<void>;
  /** The earliest expiry of a pending approval, and those that are due. */
  dueApprovals(nowMs: number): Promise<{ due: Approval[]; nextMs: number | null }>;
  listGrants(world: string): Promise<Grant[]>;
  findGrant(
    world: string,
    want: { chat: string; agent: string; tool: string; argsHash: string },
  ): Promise<Grant | null>;
  removeGrant(world: string, id: string): Promise<boolean>;
  rules(world: string): Promise<Rule[]>;
  setRules(world: string, rules: readonly Rule[]): Promise<void>;
}
