import type { Clock, Log, Model, ModelPart, ModelRequest, TokenUsage } from '../ports.ts';
import { ModelError } from '../protocol/errors.ts';
import { MAX_MESSAGE_BYTES } from '../protocol/requests.ts';
import { estimateTokens } from './context.ts';
import type { Live } from './live.ts';

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
  /** Counts every attempt, the failed ones too. */
  onUsage(usage: TokenUsage): void;
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

async function readAnswer(model: Model, request: ModelRequest, options: CallOptions): Promise<ModelAnswer> {
  const { live, signal } = options;
  const answer = { text: '', reasoning: '' };
  const toolCalls: ModelAnswer['toolCalls'] = [];
  let finish: ModelAnswer['finish'] | null = null;
  let bytes = 0;
  const before = live.text();
  try {
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
  } finally {
    options.onUsage(finish?.usage ?? estimate(request, answer));
  }
  if (!finish) {
    throw new ModelError('provider_stream_broken', 'the provider’s answer ended in the middle', { retryable: true });
  }
  if (finish.stop === 'refused' && answer.text === '' && toolCalls.length === 0) {
    throw new ModelError('provider_refused', 'the model refused to answer', { retryable: false });
  }
  return { ...answer, toolCalls, finish };
}

/** For providers that do not count, and for calls that broke. A call that got nothing back cost nothing known. */
function estimate(request: ModelRequest, answer: { text: string; reasoning: string }): TokenUsage {
  const outputTokens = estimateTokens(answer.text + answer.reasoning);
  if (outputTokens === 0) return { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
  let inputTokens = estimateTokens(request.system);
  for (const message of request.messages)
    inputTokens += estimateTokens('content' in message ? message.content : JSON.stringify(message.results));
  return { inputTokens, outputTokens, cachedTokens: 0, reasoningTokens: estimateTokens(answer.reasoning) };
}
