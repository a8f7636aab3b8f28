import type {
  Approvals,
  Claim,
  Commit,
  Directory,
  Ids,
  Journal,
  MessageDraft,
  ModelMessage,
  Models,
  RoutePlan,
  TurnOutcome,
  TurnWork,
} from '../ports.ts';
import type { Message, ToolCall, Usage } from '../protocol/entities.ts';
import { AppError } from '../protocol/errors.ts';
import type { MessageId } from '../protocol/ids.ts';
import type { ChatWindow } from './context.ts';
import type { Live } from './live.ts';
import type { Meter } from './meter.ts';
import { callModel, type ModelAnswer, type RetryPolicy } from './model-call.ts';
import { watchRepeats } from './repeated-calls.ts';
import type { Rosters } from './rosters.ts';
import { planAgentMessage } from './routing.ts';
import { type BatchDeps, runBatch } from './tool-batch.ts';
import { failure, partialMessage, senderOf } from './turn-outcome.ts';
import { prepareRequest } from './turn-request.ts';

export const DEFAULT_MAX_ITERATIONS = 50;
export const DEFAULT_TURN_TIMEOUT_MS = 10 * 60_000;

export interface TurnDeps extends BatchDeps {
  store: Directory & Journal & Commit & Approvals;
  models: Models;
  rosters: Rosters;
  ids: Ids;
  retry: RetryPolicy;
  maxTokens: number;
}

/** A finished model call with tool calls, as the journal keeps it. */
interface ModelStep {
  answer: ModelAnswer;
}

/** What a finished execution wants to commit; `parked`: the turn waits for a person and this execution is over. `replan` makes the plan anew on a fresh roster. */
export type TurnResult = 'parked' | FinishedTurn;
export interface FinishedTurn {
  outcome: TurnOutcome;
  replan?: () => Promise<RoutePlan>;
}

/**
 * One execution of a turn, from its journal: model calls until one asks for no tool, then the reply with its routing.
 * Failures become outcomes; only `fenced` and `shutdown` aborts are thrown.
 */
export async function executeTurn(
  deps: TurnDeps,
  claim: Claim,
  work: TurnWork,
  window: ChatWindow,
  live: Live,
  meter: Meter,
  signal: AbortSignal,
): Promise<TurnResult> {
  const said: string[] = [];
  const replayed: string[] = [];
  const repeats = watchRepeats(deps.hashArgs);
  const toolCalls: ToolCall[] = [];
  let reasoning = '';
  try {
    const roster = await deps.rosters.get(work.worldId);
    const trigger = await findTrigger(deps, work, window);
    const { model, provider, request } = await prepareRequest(deps, work, roster, window, trigger);
    // A first execution has no journal; one that went on after a question or a crash has.
    const journal = work.attempt > 1 ? await deps.store.steps(work.id) : [];
    const approvals = work.attempt > 1 ? await deps.store.approvalsOf(work.id) : [];
    const maxIterations = work.agent.limits.maxIterations ?? DEFAULT_MAX_ITERATIONS;

    for (let iteration = 0; iteration < maxIterations; iteration++) {
      repeats.throwIfRepeated();
      const step = `model:${iteration}`;
      const known = journal.find((entry) => entry.name === step && entry.status === 'done')?.result as
        | ModelStep
        | undefined;
      const answer =
        known?.answer ??
        (await callModel(model, request, {
          ...deps,
          live,
          signal,
          reserve: (attempt) => meter.reserve(provider, attempt),
        }));
      if (answer.text !== '') said.push(answer.text);
      if (known && answer.text !== '') replayed.push(answer.text);
      reasoning =
        answer.reasoning === '' ? reasoning : `${reasoning}${reasoning === '' ? '' : '\n\n'}${answer.reasoning}`;
      if (answer.toolCalls.length === 0) {
        return await reply(deps, work, trigger, {
          content: said.join('\n\n'),
          reasoning,
          toolCalls,
          usage: meter.total(),
        });
      }
      if (!known) {
        const result: ModelStep = { answer };
        deps.publish(await deps.store.record(claim, work.id, [{ step, result }], meter.fresh()));
        meter.stored();
      }
      const batch = await runBatch(deps, {
        ...{ claim, work, iteration, journal, approvals, signal },
        world: (await deps.rosters.get(work.worldId)).world,
        calls: answer.toolCalls,
      });
      if (batch.parked) return 'parked';
      const results = batch.results.map((result, index) => ({ ...callOf(answer, index), ...result }));
      for (const [index, call] of answer.toolCalls.entries()) {
        const result = results[index];
        toolCalls.push({
          id: call.id,
          name: call.name,
          args: call.args ?? {},
          ...(result ? { result: { content: result.content, isError: result.isError } } : {}),
        });
        if (result) repeats.note(call, result.isError);
      }
      request.messages = [...request.messages, ...toolExchange(answer, results)];
      const last = results.at(-1);
      if (last) request.scene = { ...request.scene, toolResult: last.content };
    }
    return {
      outcome: {
        state: 'failed',
        error: { code: 'limit', message: `reached ${maxIterations} model calls without an answer` },
        ...partialMessage(deps, work, trigger.id, said.join('\n\n'), 'failed', meter.total()),
        limits: [
          {
            limit: 'maxIterations',
            used: maxIterations,
            max: maxIterations,
            agentId: work.agentId,
            text: `${work.agent.name} was ended after ${maxIterations} model calls in one turn without a final answer. Raise limits.maxIterations of the agent, or ask again.`,
          },
        ],
      },
    };
  } catch (error) {
    const failing = { live, replayed: replayed.join('\n\n'), usage: meter.total(), signal };
    return { outcome: failure(deps, work, failing, error) };
  }
}

function callOf(answer: ModelAnswer, index: number): { id: string; name: string } {
  const call = answer.toolCalls[index];
  if (!call) throw new Error('a batch has more results than calls');
  return { id: call.id, name: call.name };
}

async function findTrigger(deps: TurnDeps, work: TurnWork, window: ChatWindow): Promise<Message> {
  const { seq, messageId } = work.trigger;
  for (let index = window.entries.length - 1; index >= 0; index--) {
    const entry = window.entries[index];
    if (entry?.seq === seq) return entry.message;
  }
  const message = await deps.store.getMessage(work.chatId, messageId);
  if (!message) throw new AppError('not_found', 'the message that woke this agent is no longer there');
  return message;
}

function toolExchange(
  answer: ModelAnswer,
  results: Extract<ModelMessage, { role: 'tool' }>['results'],
): ModelMessage[] {
  const { providerState } = answer.finish;
  return [
    {
      role: 'assistant',
      content: answer.text,
      toolCalls: answer.toolCalls.map(({ id, name, args }) => ({ id, name, args: args ?? {} })),
      ...(providerState ? { providerState } : {}),
    },
    { role: 'tool', results },
  ];
}

async function reply(
  deps: TurnDeps,
  work: TurnWork,
  trigger: Message,
  answer: { content: string; reasoning: string; toolCalls: ToolCall[]; usage: Usage },
): Promise<FinishedTurn> {
  const { usage } = answer;
  const id = deps.ids.make('m') as MessageId;
  const planOnce = async () =>
    planAgentMessage(await deps.rosters.get(work.worldId), {
      id,
      sender: senderOf(work.agent),
      content: answer.content,
      replyTo: trigger.sender,
      wokenBy: work.trigger.reason,
      hop: work.hop + 1,
      nowMs: deps.clock.now(),
    });
  const { published, plan } = await planOnce();
  if (published.trim() === '') return { outcome: { state: 'silent' } };
  const message: MessageDraft = {
    id,
    sender: senderOf(work.agent),
    content: published,
    ...(answer.reasoning === '' ? {} : { reasoning: answer.reasoning }),
    ...(answer.toolCalls.length === 0 ? {} : { toolCalls: answer.toolCalls }),
    replyTo: trigger.id,
    turnId: work.id,
    usage,
    status: 'complete',
  };
  return {
    outcome: { state: 'done', message, plan },
    replan: async () => {
      deps.rosters.drop(work.worldId);
      return (await planOnce()).plan;
    },
  };
}
