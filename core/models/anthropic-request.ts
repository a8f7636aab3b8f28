/** What Anthropic's Messages API gets to see (https://platform.claude.com/docs/en/api/messages). */
import type {
  ContentBlockParam,
  MessageCreateParamsStreaming,
  MessageParam,
  TextBlockParam,
} from '@anthropic-ai/sdk/resources/messages';
import type { ModelRequest } from '../ports.ts';
import { isBlank, type PlainMessage, plainConversation, plainTools, wellFormed } from './conversation.ts';

/** What a model may refuse, learned from its status 400. */
export type AnthropicQuirk = 'no_temperature' | 'no_manual_thinking' | 'no_adaptive_thinking' | 'no_effort';

const BUDGETS = { low: 2048, medium: 8192, high: 16_384 } as const;
/** The least that the API takes as a thinking budget, and what we leave for the answer itself. */
const MIN_BUDGET = 1024;
const CACHE = { type: 'ephemeral' } as const;

/** Builds a request that the API accepts whatever the history is. */
export function anthropicRequest(
  request: ModelRequest,
  quirks: ReadonlySet<AnthropicQuirk>,
): MessageCreateParamsStreaming {
  const plain = plainConversation(request.messages);
  const messages = plain.map(messageOf);
  cacheLastUsers(messages);
  const thinking = thinkingOf(request, plain, quirks);
  const temperature = thinking.thinking || quirks.has('no_temperature') ? undefined : request.temperature;
  return {
    model: request.model,
    max_tokens: request.maxTokens,
    stream: true,
    messages,
    ...(isBlank(request.system)
      ? {}
      : { system: [{ type: 'text', text: wellFormed(request.system), cache_control: CACHE }] }),
    ...toolsOf(request, plain),
    ...thinking,
    ...(temperature === undefined ? {} : { temperature }),
  };
}

function messageOf(message: PlainMessage): MessageParam {
  if (message.role === 'user') {
    const results = message.results.map(
      (result): ContentBlockParam => ({
        type: 'tool_result',
        tool_use_id: result.id,
        content: result.content,
        ...(result.isError ? { is_error: true } : {}),
      }),
    );
    const texts = message.texts.map((text): TextBlockParam => ({ type: 'text', text }));
    return { role: 'user', content: [...results, ...texts] };
  }
  return { role: 'assistant', content: ownBlocks(message) ?? rebuilt(message) };
}

function rebuilt(message: PlainMessage & { role: 'assistant' }): ContentBlockParam[] {
  const calls = message.calls.map(
    (call): ContentBlockParam => ({ type: 'tool_use', id: call.id, name: call.name, input: call.args }),
  );
  return message.text === '' ? calls : [{ type: 'text', text: message.text }, ...calls];
}

/** The blocks as the API sent them, signed thinking in its place; null where they do not fit the message any more. */
function ownBlocks(message: PlainMessage & { role: 'assistant' }): ContentBlockParam[] | null {
  if (message.state?.provider !== 'anthropic' || !Array.isArray(message.state.blocks)) return null;
  const blocks = message.state.blocks as ContentBlockParam[];
  const calls = blocks.filter((block) => block.type === 'tool_use');
  if (calls.length !== message.calls.length) return null;
  if (!message.calls.every((call, index) => call.originalId === calls[index]?.id)) return null;
  let next = 0;
  return blocks.flatMap((block): ContentBlockParam[] => {
    if (block.type === 'text') return isBlank(block.text) ? [] : [block];
    if (block.type !== 'tool_use') return [block];
    const call = message.calls[next];
    next += 1;
    return call ? [{ type: 'tool_use', id: call.id, name: call.name, input: call.args }] : [];
  });
}

/** Marks the end of the last two user messages: the next call of the turn and the next turn both find their prefix. */
function cacheLastUsers(messages: MessageParam[]): void {
  for (const message of messages.filter(({ role }) => role === 'user').slice(-2)) {
    const last = typeof message.content === 'string' ? undefined : message.content.at(-1);
    if (last?.type === 'text' || last?.type === 'tool_result') last.cache_control = CACHE;
  }
}

function toolsOf(
  request: ModelRequest,
  plain: readonly PlainMessage[],
): Pick<MessageCreateParamsStreaming, 'tools' | 'tool_choice'> {
  const tools = plainTools(request.tools);
  const used = new Set(
    plain.flatMap((message) => (message.role === 'assistant' ? message.calls : [])).map((c) => c.name),
  );
  // A history with calls needs tools declared, also where the agent has none left.
  if (tools.length === 0 && used.size > 0) {
    return {
      tools: [...used].map((name) => ({ name, description: 'No longer available.', input_schema: { type: 'object' } })),
      tool_choice: { type: 'none' },
    };
  }
  if (tools.length === 0) return {};
  return {
    tools: tools.map(({ name, description, parameters }) => ({
      name,
      description,
      input_schema: { ...parameters, type: 'object' },
    })),
  };
}

function thinkingOf(
  request: ModelRequest,
  plain: readonly PlainMessage[],
  quirks: ReadonlySet<AnthropicQuirk>,
): Pick<MessageCreateParamsStreaming, 'thinking' | 'output_config'> {
  const effort = request.reasoningEffort;
  if (effort === undefined) return {};
  const adaptive = quirks.has('no_adaptive_thinking')
    ? false
    : quirks.has('no_manual_thinking') || isAdaptive(request.model);
  if (adaptive) {
    return {
      thinking: { type: 'adaptive', display: 'summarized' },
      ...(quirks.has('no_effort') ? {} : { output_config: { effort } }),
    };
  }
  const budget = Math.min(BUDGETS[effort], request.maxTokens - MIN_BUDGET);
  if (budget < MIN_BUDGET || quirks.has('no_manual_thinking') || !keepsThinking(plain)) return {};
  return { thinking: { type: 'enabled', budget_tokens: budget } };
}

/** With a budget, an assistant message inside a tool loop must begin with its own signed thinking. */
function keepsThinking(plain: readonly PlainMessage[]): boolean {
  const asked = plain.at(-2);
  if (asked?.role !== 'assistant' || asked.calls.length === 0) return true;
  const first = ownBlocks(asked)?.[0]?.type;
  return first === 'thinking' || first === 'redacted_thinking';
}

/**
 * Models up to 4.5 think within a budget, later ones decide for themselves and refuse a budget from 4.7 on
 * (https://platform.claude.com/docs/en/build-with-claude/extended-thinking).
 */
function isAdaptive(model: string): boolean {
  if (/claude-3/.test(model)) return false;
  const version = /claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?!\d)/.exec(model);
  if (!version) return true;
  return Number(version[1]) * 100 + Number(version[2] ?? 0) >= 406;
}

/** What the words of a refusal teach about the model. */
export function learnAnthropic(complaint: string, known: ReadonlySet<AnthropicQuirk>): AnthropicQuirk | null {
  if (/effort|output_config/i.test(complaint) && !known.has('no_effort')) return 'no_effort';
  if (/adaptive/i.test(complaint) && !/enabled/i.test(complaint)) return 'no_adaptive_thinking';
  if (/thinking\.type\.?.*enabled|budget_tokens/i.test(complaint)) return 'no_manual_thinking';
  return /temperature/i.test(complaint) ? 'no_temperature' : null;
}
