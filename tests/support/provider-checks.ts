/** What the real APIs refuse with a 400, as far as a history can cause it. Each returns the complaints. */
import { z } from 'zod';

const Text = z.string().refine((text) => text.trim() !== '', 'text must not be blank');
const WellFormed = z.string().refine((text) => !/\p{Surrogate}/u.test(text), 'lone surrogate');
const ToolId = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/);
const ToolName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/);
const Cache = z.strictObject({ type: z.literal('ephemeral') }).optional();
const AnyObject = z.record(z.string(), z.unknown());

const UserBlock = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: Text.and(WellFormed), cache_control: Cache }),
  z.strictObject({
    type: z.literal('tool_result'),
    tool_use_id: ToolId,
    content: Text.and(WellFormed),
    is_error: z.boolean().optional(),
    cache_control: Cache,
  }),
]);
const AssistantBlock = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: Text.and(WellFormed) }),
  z.strictObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string().min(1) }),
  z.strictObject({ type: z.literal('redacted_thinking'), data: z.string().min(1) }),
  z.strictObject({ type: z.literal('tool_use'), id: ToolId, name: ToolName, input: AnyObject }),
]);
const AnthropicMessage = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('user'), content: z.array(UserBlock).min(1) }),
  z.strictObject({ role: z.literal('assistant'), content: z.array(AssistantBlock).min(1) }),
]);
const AnthropicBody = z.strictObject({
  model: z.string().min(1),
  max_tokens: z.int().positive(),
  stream: z.literal(true),
  system: z.array(z.strictObject({ type: z.literal('text'), text: Text, cache_control: Cache })).optional(),
  messages: z.array(AnthropicMessage).min(1),
  temperature: z.number().min(0).max(1).optional(),
  tools: z
    .array(
      z.strictObject({
        name: ToolName,
        description: z.string(),
        input_schema: z.looseObject({ type: z.literal('object') }),
      }),
    )
    .min(1)
    .optional(),
  tool_choice: z.strictObject({ type: z.enum(['auto', 'none']) }).optional(),
  thinking: z
    .discriminatedUnion('type', [
      z.strictObject({ type: z.literal('adaptive'), display: z.string().optional() }),
      z.strictObject({ type: z.literal('enabled'), budget_tokens: z.int().min(1024) }),
    ])
    .optional(),
  output_config: z.strictObject({ effort: z.enum(['low', 'medium', 'high']) }).optional(),
});

export function checkAnthropic(body: unknown): string[] {
  const parsed = AnthropicBody.safeParse(body);
  if (!parsed.success) return parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  const { messages, thinking, temperature, max_tokens, tools } = parsed.data;
  const complaints: string[] = [];
  const seen = new Set<string>();
  for (const [at, message] of messages.entries()) {
    if (message.role !== (at % 2 === 0 ? 'user' : 'assistant')) complaints.push(`messages.${at}: roles must alternate`);
    const asked = messages[at - 1];
    const wanted =
      asked?.role === 'assistant'
        ? asked.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
        : [];
    if (message.role === 'assistant') {
      for (const block of message.content) {
        if (block.type !== 'tool_use') continue;
        if (seen.has(block.id)) complaints.push(`messages.${at}: tool_use ids must be unique`);
        seen.add(block.id);
        if (!tools) complaints.push('requests with tool_use blocks must define tools');
      }
      continue;
    }
    const given = message.content.flatMap((block) => (block.type === 'tool_result' ? [block.tool_use_id] : []));
    if ([...given].sort().join() !== [...wanted].sort().join()) {
      complaints.push(`messages.${at}: tool results [${given}] do not answer the calls [${wanted}]`);
    }
    const firstText = message.content.findIndex((block) => block.type === 'text');
    const lastResult = message.content.findLastIndex((block) => block.type === 'tool_result');
    if (firstText >= 0 && lastResult > firstText) complaints.push(`messages.${at}: results come before text`);
  }
  if (messages.at(-1)?.role !== 'user') complaints.push('the last message must be from the user');
  if (thinking && temperature !== undefined) complaints.push('temperature may not be set with thinking');
  if (thinking?.type === 'enabled' && thinking.budget_tokens >= max_tokens) complaints.push('budget_tokens too large');
  const marks = JSON.stringify(body).split('"cache_control"').length - 1;
  if (marks > 4) complaints.push(`${marks} cache marks, at most 4`);
  return complaints;
}

const OpenAiMessage = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('system'), content: Text }),
  z.strictObject({ role: z.literal('user'), content: Text.and(WellFormed) }),
  z.strictObject({
    role: z.literal('assistant'),
    content: Text.and(WellFormed).nullable(),
    tool_calls: z
      .array(
        z.strictObject({
          id: ToolId,
          type: z.literal('function'),
          function: z.strictObject({ name: ToolName, arguments: z.string() }),
        }),
      )
      .min(1)
      .optional(),
  }),
  z.strictObject({ role: z.literal('tool'), tool_call_id: ToolId, content: Text.and(WellFormed) }),
]);
const OpenAiBody = z.strictObject({
  model: z.string().min(1),
  stream: z.literal(true),
  messages: z.array(OpenAiMessage).min(1),
  max_tokens: z.int().positive().optional(),
  max_completion_tokens: z.int().positive().optional(),
  stream_options: z.strictObject({ include_usage: z.boolean() }).optional(),
  temperature: z.number().min(0).max(2).optional(),
  reasoning_effort: z.enum(['low', 'medium', 'high']).optional(),
  tools: z
    .array(
      z.strictObject({
        type: z.literal('function'),
        function: z.strictObject({
          name: ToolName,
          description: z.string(),
          parameters: z.looseObject({ type: z.literal('object') }),
        }),
      }),
    )
    .min(1)
    .optional(),
});

export function checkOpenAi(body: unknown): string[] {
  const parsed = OpenAiBody.safeParse(body);
  if (!parsed.success) return parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  const { messages, max_tokens, max_completion_tokens } = parsed.data;
  const complaints: string[] = [];
  if ((max_tokens === undefined) === (max_completion_tokens === undefined)) complaints.push('exactly one token limit');
  let open: string[] = [];
  let last: string | null = null;
  for (const [at, message] of messages.entries()) {
    if (message.role === 'system') {
      if (at > 0) complaints.push(`messages.${at}: system comes first`);
      continue;
    }
    if (message.role === 'tool') {
      if (!open.includes(message.tool_call_id)) complaints.push(`messages.${at}: a result without its call`);
      open = open.filter((id) => id !== message.tool_call_id);
    } else {
      if (open.length > 0) complaints.push(`messages.${at}: calls ${open} have no result`);
      open = [];
      if (message.role === last) complaints.push(`messages.${at}: roles must alternate`);
      if (last === null && message.role !== 'user') complaints.push('the first message must be from the user');
    }
    if (message.role === 'assistant') {
      open = message.tool_calls?.map((call) => call.id) ?? [];
      if (message.content === null && open.length === 0) complaints.push(`messages.${at}: empty`);
    }
    last = message.role;
  }
  if (last === 'assistant') complaints.push('the last message must not be from the assistant');
  return complaints;
}
