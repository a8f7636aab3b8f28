import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import type { Model, ModelPart, TokenUsage } from '../ports.ts';
import type { Outbound } from '../safety/outbound.ts';
import { type Quirks, runCall } from './call.ts';
import { parseArgs } from './conversation.ts';
import { isReasoningModel, learnOpenAi, type OpenAiQuirk, openAiRequest } from './openai-request.ts';
import type { ProviderTarget } from './target.ts';
import { splitThinking } from './think-tags.ts';

type Stop = Extract<ModelPart, { type: 'finish' }>['stop'];

/** A model that thinks sends nothing meanwhile; it gets this many times the usual silence. */
const THINKING_PATIENCE = 5;

/**
 * Chat completions as OpenAI, Ollama, vLLM, LM Studio, OpenRouter and others serve them. The SDK is loaded at the
 * first call. What a server refuses (stream options, a token limit's name, a temperature) is left out from then on.
 */
export function createOpenAiModel(target: ProviderTarget): Model {
  const quirks: Quirks<OpenAiQuirk> = new Map();
  const isOpenAi = new URL(target.baseUrl).hostname === 'api.openai.com';
  return {
    stream: (request, signal) =>
      runCall({
        target,
        model: request.model,
        signal,
        patience: isReasoningModel(request.model) || request.reasoningEffort !== undefined ? THINKING_PATIENCE : 1,
        quirks,
        learn: learnOpenAi,
        async *attempt(outbound, callSignal, known) {
          const client = await openClient(target, outbound);
          const body = openAiRequest(request, known, isOpenAi);
          const stream = await client.chat.completions.create(body, { signal: callSignal });
          yield* partsOf(stream);
        },
      }),
  };
}

async function openClient(target: ProviderTarget, outbound: Outbound) {
  const { OpenAI } = await import('openai');
  return new OpenAI({
    baseURL: target.provider === 'ollama' ? withV1(target.baseUrl) : target.baseUrl,
    // Explicit values keep the SDK from looking into the environment.
    apiKey: target.apiKey ?? 'none',
    organization: null,
    project: null,
    ...(target.apiKey === null ? { defaultHeaders: { Authorization: null } } : {}),
    fetch: outbound.fetch,
    maxRetries: 0,
    logLevel: 'off',
  });
}

/** OLLAMA_BASE_URL is the address of the server; its OpenAI interface lies under /v1. */
function withV1(url: string): string {
  return url.endsWith('/v1') ? url : `${url}/v1`;
}

/** Fields that are no part of OpenAI's types but that servers send. */
type LooseDelta = ChatCompletionChunk.Choice.Delta & { reasoning_content?: unknown; reasoning?: unknown };

/** Maps the chunks of one answer. Its usage comes after the chunk that says it is finished. */
async function* partsOf(chunks: AsyncIterable<ChatCompletionChunk>): AsyncGenerator<ModelPart> {
  const thinking = splitThinking();
  const calls = openCalls();
  let usage: TokenUsage | undefined;
  let finish: string | null = null;
  let refused = false;
  try {
    for await (const chunk of chunks) {
      if (chunk.usage) usage = usageOf(chunk.usage);
      const choice = chunk.choices?.[0];
      if (!choice) continue;
      const delta: LooseDelta | undefined = choice.delta;
      const thought = textOf(delta?.reasoning_content) || textOf(delta?.reasoning);
      if (thought !== '') yield { type: 'reasoning', text: thought };
      yield* thinking.push(textOf(delta?.content));
      const refusal = textOf(delta?.refusal);
      if (refusal !== '') {
        refused = true;
        yield { type: 'text', text: refusal };
      }
      for (const call of delta?.tool_calls ?? []) calls.grow(call);
      if (typeof choice.finish_reason === 'string') finish = choice.finish_reason;
    }
  } catch (error) {
    // The answer is whole where it said so; only its usage is lost.
    if (finish === null) throw error;
  }
  if (finish === null) return;
  yield* thinking.end();
  const made = calls.all();
  yield* made;
  yield { type: 'finish', stop: stopOf(finish, refused, made.length > 0), ...(usage ? { usage } : {}) };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function stopOf(reason: string, refused: boolean, hasCalls: boolean): Stop {
  if (refused || reason === 'content_filter') return 'refused';
  if (reason === 'length') return 'length';
  return hasCalls ? 'tool' : 'end';
}

type CallDelta = ChatCompletionChunk.Choice.Delta.ToolCall;

/** Joins the pieces of tool calls. Some servers give no index, or the same one to every call. */
function openCalls(): { grow(delta: CallDelta): void; all(): Extract<ModelPart, { type: 'toolCall' }>[] } {
  const open: { index: number | undefined; id: string; name: string; raw: string }[] = [];
  return {
    grow(delta) {
      const index = typeof delta.index === 'number' ? delta.index : undefined;
      const id = textOf(delta.id);
      const name = textOf(delta.function?.name);
      let call = index === undefined ? open.at(-1) : open.findLast((candidate) => candidate.index === index);
      const isNew = call === undefined || (id !== '' && call.id !== '' && id !== call.id);
      if (isNew || call === undefined) {
        call = { index, id: '', name: '', raw: '' };
        open.push(call);
      }
      if (id !== '') call.id = id;
      // A name that comes again whole is the same name, a further piece belongs to it.
      if (name !== '' && name !== call.name) call.name += name;
      call.raw += textOf(delta.function?.arguments);
    },
    all: () =>
      open.map(({ id, name, raw }, at) => ({
        type: 'toolCall',
        id: id || `call_${at + 1}`,
        name,
        args: parseArgs(raw),
        raw,
      })),
  };
}

function usageOf(raw: NonNullable<ChatCompletionChunk['usage']>): TokenUsage {
  const count = (value: unknown): number =>
    typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.round(value) : 0;
  const inputTokens = count(raw.prompt_tokens);
  const outputTokens = count(raw.completion_tokens);
  return {
    inputTokens,
    outputTokens,
    cachedTokens: Math.min(count(raw.prompt_tokens_details?.cached_tokens), inputTokens),
    reasoningTokens: Math.min(count(raw.completion_tokens_details?.reasoning_tokens), outputTokens),
  };
}
