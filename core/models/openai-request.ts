/** What a server for chat completions gets to see (https://platform.openai.com/docs/api-reference/chat). */
import type {
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions';
import type { ModelRequest } from '../ports.ts';
import { isBlank, type PlainMessage, plainConversation, plainTools, wellFormed } from './conversation.ts';

/** What a server may refuse, learned from its status 400. */
export type OpenAiQuirk = 'no_stream_options' | 'other_token_limit' | 'no_temperature' | 'no_effort';

/** Models that think before they answer: they refuse `max_tokens` and `temperature`. */
export function isReasoningModel(model: string): boolean {
  return /(?:^|\/)(?:o\d|gpt-5(?!.*-chat))/.test(model);
}

/** Builds a request that servers accept whatever the history is. */
export function openAiRequest(
  request: ModelRequest,
  quirks: ReadonlySet<OpenAiQuirk>,
  isOpenAi: boolean,
): ChatCompletionCreateParamsStreaming {
  const reasons = isReasoningModel(request.model);
  // Servers other than OpenAI's own often know only the older name.
  const completionLimit = (isOpenAi || reasons) !== quirks.has('other_token_limit');
  const temperature = reasons || quirks.has('no_temperature') ? undefined : request.temperature;
  const tools = plainTools(request.tools);
  const system: ChatCompletionMessageParam[] = isBlank(request.system)
    ? []
    : [{ role: 'system', content: wellFormed(request.system) }];
  return {
    model: request.model,
    stream: true,
    messages: [...system, ...plainConversation(request.messages).flatMap(messagesOf)],
    ...(completionLimit ? { max_completion_tokens: request.maxTokens } : { max_tokens: request.maxTokens }),
    ...(quirks.has('no_stream_options') ? {} : { stream_options: { include_usage: true } }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(request.reasoningEffort === undefined || quirks.has('no_effort')
      ? {}
      : { reasoning_effort: request.reasoningEffort }),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, parameters }) => ({
            type: 'function' as const,
            function: { name, description, parameters },
          })),
        }),
  };
}

function messagesOf(message: PlainMessage): ChatCompletionMessageParam[] {
  if (message.role === 'user') {
    const results = message.results.map(
      (result): ChatCompletionMessageParam => ({
        role: 'tool',
        tool_call_id: result.id,
        content: result.isError ? `Error: ${result.content}` : result.content,
      }),
    );
    if (message.texts.length === 0) return results;
    return [...results, { role: 'user', content: message.texts.join('\n\n') }];
  }
  if (message.calls.length === 0) return [{ role: 'assistant', content: message.text }];
  return [
    {
      role: 'assistant',
      content: message.text === '' ? null : message.text,
      tool_calls: message.calls.map((call) => ({
        id: call.id,
        type: 'function' as const,
        function: { name: call.name, arguments: JSON.stringify(call.args) },
      })),
    },
  ];
}

const REFUSES =
  /unsupported|not supported|not support|unrecogni[sz]ed|unknown|unexpected|not permitted|not allowed|extra|instead|does not/i;

/** What the words of a refusal teach about the server. */
export function learnOpenAi(complaint: string): OpenAiQuirk | null {
  if (!REFUSES.test(complaint)) return null;
  if (/stream_options|include_usage/i.test(complaint)) return 'no_stream_options';
  if (/max_tokens|max_completion_tokens/i.test(complaint)) return 'other_token_limit';
  if (/temperature/i.test(complaint)) return 'no_temperature';
  return /reasoning|think/i.test(complaint) ? 'no_effort' : null;
}
