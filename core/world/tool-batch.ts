import type {
  ApprovalDraft,
  Approvals,
  Claim,
  Clock,
  Journal,
  Log,
  ModelPart,
  Step,
  StepRecord,
  Tool,
  ToolContext,
  ToolResult,
  TurnWork,
} from '../ports.ts';
import type { Approval, Question, World } from '../protocol/entities.ts';
import type { StoredEvent } from '../protocol/events.ts';
import { effectiveTools, judge } from './permission.ts';

/** Results are capped, head and tail kept. */
const MAX_RESULT_CHARS = 64 * 1024;
const SUMMARY_CHARS = 200;

export type Call = Extract<ModelPart, { type: 'toolCall' }>;

export interface BatchDeps {
  store: Journal & Approvals;
  tools: readonly Tool[];
  clock: Clock;
  log: Log;
  hashArgs(tool: string, args: Record<string, unknown>): string;
  publish(events: readonly StoredEvent[]): void;
}

export interface Batch {
  claim: Claim;
  work: TurnWork;
  world: World;
  iteration: number;
  calls: readonly Call[];
  /** Steps and approvals of this turn as they were when this execution began. */
  journal: readonly Step[];
  approvals: readonly (Approval & { step: string })[];
  signal: AbortSignal;
}

interface Ready {
  step: string;
  tool: Tool;
  args: Record<string, unknown>;
  context: ToolContext;
  /** The step was begun before a crash and a person said to run it again. */
  isBegun: boolean;
}

type Judged =
  | { kind: 'done'; step: string; result: ToolResult; isJournalled: boolean }
  | { kind: 'ask'; ask: ApprovalDraft; tool: Tool; args: Record<string, unknown> }
  | { kind: 'run'; ready: Ready };

/**
 * One batch of a model's tool calls. Every call is judged before any runs: unknown tools, broken arguments and denials
 * are results; what must be asked parks the turn, and nothing of the batch runs before all is decided. Reads then run
 * together, writes in order. `parked`: the turn waits and holds nothing.
 */
export async function runBatch(
  deps: BatchDeps,
  batch: Batch,
): Promise<{ parked: true } | { parked: false; results: ToolResult[] }> {
  const tools = new Map(effectiveTools(deps.tools, batch.work.agent, batch.world).map((tool) => [tool.name, tool]));
  const judged: Judged[] = [];
  for (const [index, call] of batch.calls.entries()) {
    judged.push(await judgeCall(deps, batch, tools, `tool:${batch.iteration}:${index}`, call));
  }
  for (;;) {
    const asks = judged.flatMap((one) => (one.kind === 'ask' ? [one] : []));
    if (asks.length === 0) break;
    const parked = await deps.store.park(
      batch.claim,
      batch.work,
      asks.map(({ ask }) => ask),
    );
    if (parked.ok) {
      deps.publish(parked.events);
      return { parked: true };
    }
    const index = judged.findIndex((one) => one.kind === 'ask' && one.ask.step === parked.step);
    const taken = judged[index];
    if (taken?.kind !== 'ask') throw new Error(`the store refused a question that was not asked: ${parked.step}`);
    const result =
      taken.tool.slotTaken?.(taken.args) ?? failed('Another request for the same thing is waiting for a person.');
    judged[index] = { kind: 'done', step: parked.step, result, isJournalled: false };
  }
  return { parked: false, results: await runAll(deps, batch, judged) };
}

const failed = (content: string): ToolResult => ({ content, isError: true });

async function judgeCall(
  deps: BatchDeps,
  batch: Batch,
  tools: ReadonlyMap<string, Tool>,
  step: string,
  call: Call,
): Promise<Judged> {
  const { work, world, journal, approvals } = batch;
  const known = journal.find((entry) => entry.name === step);
  const done = (result: ToolResult, isJournalled = false): Judged => ({ kind: 'done', step, result, isJournalled });
  if (known?.status === 'done') return done(known.result as ToolResult, true);

  const tool = tools.get(call.name);
  if (!tool) {
    const names = [...tools.keys()].join(', ');
    return done(
      failed(
        `There is no tool called ${JSON.stringify(call.name)} for you. ${names === '' ? 'You have no tools.' : `Your tools: ${names}.`}`,
      ),
    );
  }
  if (call.args === null) {
    return done(
      failed(
        `The arguments of ${tool.name} must be one JSON object; they were ${JSON.stringify(call.raw.slice(0, 200))}.`,
      ),
    );
  }
  const parsed = tool.parse(call.args);
  if (!parsed.ok) return done(parsed.result);
  const { args } = parsed;
  const context: ToolContext = {
    worldId: work.worldId,
    chatId: work.chatId,
    turnId: work.id,
    agent: work.agent,
    key: `${work.id}#${step}`,
    signal: batch.signal,
    effective: [...tools.keys()],
  };
  const ready = (isBegun: boolean): Judged => ({ kind: 'run', ready: { step, tool, args, context, isBegun } });

  if (known?.status === 'started' && !tool.isRepeatable) {
    const outcome = approvals.find((approval) => approval.step === `${step}:outcome`);
    if (!outcome) return { kind: 'ask', tool, args, ask: outcomeQuestion(step, tool, args) };
    if (outcome.resolution?.optionId === 'retry') return ready(true);
    if (outcome.resolution?.optionId === 'result')
      return done({ content: outcome.resolution.text ?? '', isError: false });
    return done(
      failed(
        `Nobody knows whether this call of ${tool.name} took effect: the server ended in the middle of it. A person decided not to run it again.`,
      ),
    );
  }

  const hash = deps.hashArgs(tool.name, args);
  // What runs is what was shown: an approval of other arguments does not count, and the call is asked anew.
  const decided = approvals.filter((approval) => approval.step === step || approval.step.startsWith(`${step}+`));
  const approval = decided.find((one) => one.argsHash === hash && one.tool === tool.name);
  if (approval) {
    if (approval.status === 'pending')
      throw new Error(`turn ${work.id} runs while its approval ${approval.id} is pending`);
    if (approval.status !== 'answered') return done(denial(tool, args, approval));
    return tool.asks === 'question' ? done(answered(approval)) : ready(known?.status === 'started');
  }
  const verdict = await judge(deps.store, { tool, argsHash: hash, agent: work.agent, world, chat: work.chatId });
  if (verdict.verdict === 'deny') return done(failed(verdict.why));
  if (verdict.verdict === 'allow') return ready(known?.status === 'started');
  const described = await tool.describe(args, context);
  if (!described.ok) return done(described.result);
  const { question } = described;
  return {
    kind: 'ask',
    tool,
    args,
    ask: {
      step: decided.length === 0 ? step : `${step}+${decided.length}`,
      kind: tool.name === 'create_agent' ? 'create_agent' : tool.asks === 'question' ? 'ask_user' : 'tool',
      question,
      questions: question.questions ?? [yesOrNo(question.title)],
      defaultOptionId: question.questions ? null : 'no',
      tool: tool.name,
      args,
      argsHash: hash,
      ...(world.approvalTimeoutMs === null ? {} : { expiresAtMs: deps.clock.now() + world.approvalTimeoutMs }),
    },
  };
}

const yesOrNo = (question: string): Question => ({
  id: 'allow',
  header: 'Allow',
  question,
  options: [
    { id: 'yes', label: 'Allow' },
    { id: 'no', label: 'Deny' },
  ],
  freeText: true,
});

function outcomeQuestion(step: string, tool: Tool, args: Record<string, unknown>): ApprovalDraft {
  const title = `Did ${tool.name} take effect?`;
  return {
    step: `${step}:outcome`,
    kind: 'unknown_outcome',
    question: {
      title,
      message: `The server ended while ${tool.name} was running. It is not run again unless you say so.\n\n${JSON.stringify(args, null, 2)}`,
    },
    questions: [
      {
        id: 'outcome',
        header: 'Outcome',
        question: title,
        options: [
          { id: 'retry', label: 'Run it again' },
          { id: 'skip', label: 'Leave it', description: 'the agent is told that the outcome is unknown' },
          { id: 'result', label: 'I know the result', description: 'write it below' },
        ],
        freeText: true,
      },
    ],
    defaultOptionId: null,
    tool: tool.name,
    args,
  };
}

function denial(tool: Tool, args: Record<string, unknown>, approval: Approval): ToolResult {
  const reason =
    approval.status === 'expired' ? 'timeout' : approval.status === 'cancelled' ? 'cancelled' : 'user_denied';
  const text = approval.resolution?.text;
  if (tool.denied) return tool.denied(args, reason, text);
  const why =
    reason === 'timeout'
      ? 'Nobody answered in time'
      : reason === 'cancelled'
        ? 'The request was cancelled'
        : `${approval.resolution?.by ?? 'A person'} said no`;
  return failed(`Not allowed: ${why}${text ? `, and wrote: ${JSON.stringify(text)}` : ''}. The call was not run.`);
}

/** What the people chose and wrote, for the model: data, not instructions. */
function answered(approval: Approval): ToolResult {
  const { resolution, questions } = approval;
  const answers = (resolution?.answers ?? []).map((answer) => {
    const question = questions.find((one) => one.id === answer.questionId);
    const chosen = answer.optionIds.map((id) => question?.options.find((option) => option.id === id)?.label ?? id);
    return {
      question: question?.question ?? answer.questionId,
      chosen,
      ...(answer.text === undefined ? {} : { text: answer.text }),
    };
  });
  return { content: JSON.stringify({ answeredBy: resolution?.by, answers }), isError: false };
}

async function runAll(deps: BatchDeps, batch: Batch, judged: readonly Judged[]): Promise<ToolResult[]> {
  const results = new Map<string, ToolResult>();
  const fresh: StepRecord[] = [];
  for (const one of judged) {
    if (one.kind !== 'done') continue;
    results.set(one.step, one.result);
    if (!one.isJournalled) fresh.push({ step: one.step, result: one.result });
  }
  const ready = judged.flatMap((one) => (one.kind === 'run' ? [one.ready] : []));
  const reads = ready.filter(({ tool }) => tool.effect === 'read');
  await Promise.all(
    reads.map(async (one) => {
      const result = await runOne(deps, one);
      results.set(one.step, result);
      fresh.push({ step: one.step, result, event: finished(batch, one, result) });
    }),
  );
  if (fresh.length > 0) deps.publish(await deps.store.record(batch.claim, batch.work.id, fresh));
  for (const one of ready) {
    if (one.tool.effect === 'read') continue;
    batch.signal.throwIfAborted();
    if (!one.isBegun) deps.publish(await deps.store.begin(batch.claim, batch.work.id, one.step, started(batch, one)));
    const result = await runOne(deps, one);
    results.set(one.step, result);
    deps.publish(
      await deps.store.record(batch.claim, batch.work.id, [
        { step: one.step, result, event: finished(batch, one, result) },
      ]),
    );
    await deps.store.releaseSlot(batch.work.id, one.step);
  }
  return batch.calls.map(
    (_, index) => results.get(`tool:${batch.iteration}:${index}`) ?? failed('The call has no result.'),
  );
}

/** A tool that throws is a failed call, unless the turn itself was ended. */
async function runOne(deps: BatchDeps, { tool, args, context }: Ready): Promise<ToolResult> {
  try {
    const result = await tool.run(args, context);
    context.signal.throwIfAborted();
    return { ...result, content: clipResult(result.content) };
  } catch (error) {
    context.signal.throwIfAborted();
    deps.log.error({ turn: context.turnId, tool: tool.name, err: error }, 'a tool failed by a fault');
    return failed(`${tool.name} failed by an unexpected fault; the server’s log has the details.`);
  }
}

function clipResult(text: string): string {
  if (text.length <= MAX_RESULT_CHARS) return text;
  const half = MAX_RESULT_CHARS / 2;
  return `${text.slice(0, half)}\n[… ${text.length - MAX_RESULT_CHARS} characters left out …]\n${text.slice(-half)}`;
}

const started = ({ work }: Batch, { tool, args, context }: Ready) => ({
  type: 'tool.started' as const,
  chat: work.chatId,
  data: { turnId: work.id, agentId: work.agentId, callId: context.key, tool: tool.name, args },
});

const finished = ({ work }: Batch, { tool, context }: Ready, result: ToolResult) => ({
  type: 'tool.finished' as const,
  chat: work.chatId,
  data: {
    turnId: work.id,
    agentId: work.agentId,
    callId: context.key,
    tool: tool.name,
    isError: result.isError,
    summary: result.content.slice(0, SUMMARY_CHARS),
  },
});
