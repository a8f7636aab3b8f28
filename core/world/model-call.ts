import type { Clock, Log, Model, ModelPart, ModelRequest, TokenUsage } from '../ports.ts';
import { type ErrorCode, ModelError } from '../protocol/errors.ts';
import { MAX_MESSAGE_BYTES } from '../protocol/requests.ts';
import { promptTokens } from './budget.ts';
import { estimateTokens } from './context.ts';
import type { Live } from './live.ts';
import type { Reservation } from './meter.ts';

/** How a failing provider is tried again inside one turn. All times in milliseconds. */
export interface RetryPolicy {
  firstDelayMs: number;
  maxDelayMs: number;
  /** From the first attempt on; no new attempt begins after it. */
  deadlineMs: number;
}

export const DEFAULT_RETRY: RetryPolicy = { firstDelayMs: 500, maxDelayMs: 20_000, deadlineMs: 120_000 };

export interface ModelAnswer {
  text: string;
  reasoning: string;
  toolCalls: Extract<ModelPart, { type: 'toolCall' }>[];
  finish: Extract<ModelPart, { type: 'finish' }>;
}

export interface CallOptions {
  clock: Clock;
  log: Log;
  live: Live;
  retry: RetryPolicy;
  signal: AbortSignal;
  /** Called before every attempt; where it throws, none is made. */
  reserve(request: ModelRequest): Promise<Reservation>;
}

/**
 * One model call with back-off up to a total deadline. Only errors that the provider's adapter calls retryable are
 * tried again. Throws the last ModelError, or the signal's reason.
 */
export async function callModel(model: Model, request: ModelRequest, options: CallOptions): Promise<ModelAnswer> {
  const { clock, live, retry, signal } = options;
  const start = clock.now();
  for (let attempt = 0; ; attempt++) {
    try {
      return await readAnswer(model, request, options);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ModelError) || !error.retryable) throw error;
      const backOff = Math.min(retry.maxDelayMs, retry.firstDelayMs * 2 ** attempt);
      const delayMs = Math.max(backOff, error.retryAfterMs ?? 0);
      if (clock.now() - start + delayMs > retry.deadlineMs) throw error;
      options.log.warn(
        { chat: live.turn.chatId, turn: live.turn.id, agent: live.turn.agentId, code: error.code, delayMs },
        'model call failed; trying again',
      );
      live.restart();
      live.retrying({ code: error.code, message: error.message }, delayMs);
      await clock.sleep(delayMs, signal);
    }
  }
}

/** Errors with which a provider refuses a call before it works on it: nothing is charged. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  ...(['missing_api_key', 'provider_unknown', 'provider_auth', 'provider_invalid_request'] as const),
  ...(['provider_rate_limited', 'provider_overloaded', 'provider_unreachable'] as const),
  ...(['script_invalid', 'script_failed'] as const),
]);
const NOTHING: TokenUsage = Object.freeze({ inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 });

async function readAnswer(model: Model, request: ModelRequest, options: CallOptions): Promise<ModelAnswer> {
  const { live, signal } = options;
  signal.throwIfAborted();
  const reservation = await options.reserve(request);
  const answer = { text: '', reasoning: '' };
  const toolCalls: ModelAnswer['toolCalls'] = [];
  let finish: ModelAnswer['finish'] | null = null;
  let wasRefused = false;
  let bytes = 0;
  const before = live.text();
  try {
    signal.throwIfAborted();
    for await (const part of model.stream(request, signal)) {
      signal.throwIfAborted();
      switch (part.type) {
        case 'text':
        case 'reasoning': {
          bytes += part.text.length;
          if (bytes > MAX_MESSAGE_BYTES) {
            throw new ModelError(
              'provider_nonsense',
              `the answer is longer than ${MAX_MESSAGE_BYTES / 1024} KB and was cut off`,
              {
                retryable: false,
              },
            );
          }
          const opening = part.type === 'text' && answer.text === '' && before !== '' ? '\n\n' : '';
          answer[part.type] += part.text;
          live.push(part.type, opening + part.text);
          break;
        }
        case 'toolCall':
          toolCalls.push(part);
          break;
        case 'finish':
          finish = part;
          break;
      }
    }
  } catch (error) {
    const isEmpty = answer.text === '' && answer.reasoning === '' && toolCalls.length === 0;
    wasRefused = isEmpty && error instanceof ModelError && REFUSALS.has(error.code);
    throw error;
  } finally {
    if (finish?.usage) reservation.settle(finish.usage, false);
    else if (wasRefused) reservation.settle(NOTHING, false);
    else reservation.settle(estimate(request, answer, toolCalls), true);
  }
  if (!finish) {
    throw new ModelError('provider_stream_broken', 'the provider’s answer ended in the middle', { retryable: true });
  }
  if (finish.stop === 'refused' && answer.text === '' && toolCalls.length === 0) {
    throw new ModelError('provider_refused', 'the model refused to answer', { retryable: false });
  }
  return { ...answer, toolCalls, finish };
}

/** For providers that do not count, and for calls that broke: what was sent and what came back. */
function estimate(
  request: ModelRequest,
  answer: { text: string; reasoning: string },
  toolCalls: ModelAnswer['toolCalls'],
): TokenUsage {
  const calls = toolCalls.map((call) => call.name + call.raw).join('');
  return {
    inputTokens: promptTokens(request),
    outputTokens: estimateTokens(answer.text + answer.reasoning + calls),
    cachedTokens: 0,
    reasoningTokens: estimateTokens(answer.reasoning),
  };
}
