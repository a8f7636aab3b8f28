import type { RawMessageStreamEvent } from '@anthropic-ai/sdk/resources/messages';
import type { Model, ModelPart, TokenUsage } from '../ports.ts';
import type { Outbound } from '../safety/outbound.ts';
import { type AnthropicQuirk, anthropicRequest, learnAnthropic } from './anthropic-request.ts';
import { type Quirks, runCall } from './call.ts';
import { parseArgs } from './conversation.ts';
import type { ProviderTarget } from './target.ts';

type FinishPart = Extract<ModelPart, { type: 'finish' }>;

/** Anthropic's Messages API: streaming, tools, thinking, prompt caching. The SDK is loaded at the first call. */
export function createAnthropicModel(target: ProviderTarget): Model {
  const quirks: Quirks<AnthropicQuirk> = new Map();
  return {
    stream: (request, signal) =>
      runCall({
        target,
        model: request.model,
        signal,
        patience: 1,
        quirks,
        learn: learnAnthropic,
        async *attempt(outbound, callSignal, known) {
          const client = await openClient(target, outbound);
          const body = anthropicRequest(request, known);
          const stream = await client.messages.create(body, { signal: callSignal });
          yield* partsOf(stream);
        },
      }),
  };
}

async function openClient(target: ProviderTarget, outbound: Outbound) {
  const { Anthropic } = await import('@anthropic-ai/sdk');
  return new Anthropic({
    baseURL: target.baseUrl,
    // An explicit value keeps the SDK from looking into the environment and the home directory.
    apiKey: target.apiKey ?? 'none',
    authToken: null,
    defaultHeaders: extraHeaders(target),
    fetch: outbound.fetch,
    maxRetries: 0,
    logLevel: 'off',
    openTelemetry: false,
  });
}

/**
 * The SDK sends the key as a bearer token. Servers that copy the API often know only the older `x-api-key`,
 * so any other address gets both.
 */
function extraHeaders({ apiKey, baseUrl }: ProviderTarget): Record<string, string | null> {
  if (apiKey === null) return { authorization: null };
  return new URL(baseUrl).hostname === 'api.anthropic.com' ? {} : { 'x-api-key': apiKey };
}

/** A content block while it streams. */
type Block =
  | { type: 'text'; text: string }
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'redacted_thinking'; data: string }
  | { type: 'tool_use'; id: string; name: string; raw: string };

/** Maps the events of one message (https://platform.claude.com/docs/en/build-with-claude/streaming). */
async function* partsOf(events: AsyncIterable<RawMessageStreamEvent>): AsyncGenerator<ModelPart> {
  const blocks = new Map<number, Block>();
  const usage: TokenUsage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
  let counted = false;
  let stop: FinishPart['stop'] | null = null;
  for await (const event of events) {
    switch (event.type) {
      case 'message_start':
        counted = addUsage(usage, event.message?.usage) || counted;
        break;
      case 'content_block_start': {
        const block = startOf(event.content_block);
        if (block === null) break;
        blocks.set(event.index, block);
        if (block.type === 'text' && block.text !== '') yield { type: 'text', text: block.text };
        break;
      }
      case 'content_block_delta':
        yield* grow(blocks.get(event.index), event.delta);
        break;
      case 'content_block_stop': {
        const block = blocks.get(event.index);
        if (block?.type !== 'tool_use') break;
        yield { type: 'toolCall', id: block.id, name: block.name, args: parseArgs(block.raw), raw: block.raw };
        break;
      }
      case 'message_delta':
        counted = addUsage(usage, event.usage) || counted;
        if (event.delta?.stop_reason) stop = stopOf(event.delta.stop_reason);
        break;
      default:
    }
  }
  if (stop === null) return;
  yield { type: 'finish', stop, ...(counted ? { usage } : {}), ...stateOf([...blocks.values()]) };
}

function startOf(
  block: Extract<RawMessageStreamEvent, { type: 'content_block_start' }>['content_block'],
): Block | null {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text };
    case 'thinking':
      return { type: 'thinking', thinking: block.thinking, signature: block.signature };
    case 'redacted_thinking':
      return { type: 'redacted_thinking', data: block.data };
    case 'tool_use':
      return { type: 'tool_use', id: block.id, name: block.name, raw: '' };
    default:
      return null;
  }
}

type Delta = Extract<RawMessageStreamEvent, { type: 'content_block_delta' }>['delta'];

function* grow(block: Block | undefined, delta: Delta): Generator<ModelPart> {
  if (delta.type === 'text_delta' && block?.type === 'text') {
    block.text += delta.text;
    if (delta.text !== '') yield { type: 'text', text: delta.text };
  } else if (delta.type === 'thinking_delta' && block?.type === 'thinking') {
    block.thinking += delta.thinking;
    if (delta.thinking !== '') yield { type: 'reasoning', text: delta.thinking };
  } else if (delta.type === 'signature_delta' && block?.type === 'thinking') {
    block.signature += delta.signature;
  } else if (delta.type === 'input_json_delta' && block?.type === 'tool_use') {
    block.raw += delta.partial_json;
  }
}

/** Only a message that thought has to come back as it was; any other is rebuilt from its text and calls. */
function stateOf(blocks: readonly Block[]): Pick<FinishPart, 'providerState'> {
  if (!blocks.some((block) => block.type === 'thinking' || block.type === 'redacted_thinking')) return {};
  const kept = blocks.map((block) => {
    if (block.type !== 'tool_use') return block;
    return { type: block.type, id: block.id, name: block.name, input: parseArgs(block.raw) ?? {} };
  });
  return { providerState: { provider: 'anthropic', blocks: kept } };
}

function stopOf(reason: string): FinishPart['stop'] {
  if (reason === 'tool_use') return 'tool';
  if (reason === 'max_tokens' || reason === 'model_context_window_exceeded') return 'length';
  return reason === 'refusal' ? 'refused' : 'end';
}

interface RawUsage {
  input_tokens?: number | null;
  output_tokens?: number | null;
  cache_creation_input_tokens?: number | null;
  cache_read_input_tokens?: number | null;
  output_tokens_details?: { thinking_tokens?: number | null } | null;
}

/** Counts are totals so far, not increments; `input_tokens` leaves out what the cache read and wrote. */
function addUsage(usage: TokenUsage, raw: RawUsage | null | undefined): boolean {
  if (!raw) return false;
  const count = (value: number | null | undefined): number =>
    typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.round(value) : 0;
  const cached = count(raw.cache_read_input_tokens);
  const written = count(raw.cache_creation_input_tokens);
  const input = count(raw.input_tokens) + written + cached;
  usage.inputTokens = Math.max(usage.inputTokens, input);
  usage.cachedTokens = Math.min(Math.max(usage.cachedTokens, cached), usage.inputTokens);
  if (written > 0) usage.cacheWriteTokens = Math.max(usage.cacheWriteTokens ?? 0, written);
  usage.outputTokens = Math.max(usage.outputTokens, count(raw.output_tokens));
  const thought = count(raw.output_tokens_details?.thinking_tokens);
  usage.reasoningTokens = Math.min(Math.max(usage.reasoningTokens, thought), usage.outputTokens);
  return true;
}
