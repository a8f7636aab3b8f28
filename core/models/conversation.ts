/** Turns any history into one that every provider accepts. */
import type { ModelMessage, ToolSpec } from '../ports.ts';

const SAFE_ID = /^[a-zA-Z0-9_-]{1,40}$/;
const SAFE_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** Half an emoji, as a cut in the middle of a text leaves it; providers refuse it. */
const LONE_SURROGATE = /\p{Surrogate}/gu;

export interface PlainCall {
  id: string;
  /** The id that the message came with. */
  originalId: string;
  name: string;
  args: Record<string, unknown>;
}

export interface PlainResult {
  id: string;
  content: string;
  isError: boolean;
}

/** `user` holds the results of the calls right before it, then what people and others said. */
export type PlainMessage =
  | { role: 'user'; results: PlainResult[]; texts: string[] }
  | { role: 'assistant'; text: string; calls: PlainCall[]; state: { provider: string; blocks: unknown } | null };

/**
 * Roles alternate and begin and end with `user`; nothing is empty; each call has exactly one result, right after
 * it, and results without a call are dropped; ids are unique and safe, names ASCII; every text is well-formed.
 */
export function plainConversation(messages: readonly ModelMessage[]): PlainMessage[] {
  const out: PlainMessage[] = [];
  const ids = idMaker();
  for (const message of messages) {
    if (message.role === 'user') {
      if (!isBlank(message.content)) userAt(out).texts.push(wellFormed(message.content));
    } else if (message.role === 'tool') {
      for (const result of message.results) addResult(out, result);
    } else {
      addAssistant(out, message, ids);
    }
  }
  const first = out[0];
  if (first === undefined || first.role === 'assistant') {
    out.unshift({ role: 'user', results: [], texts: ['(The conversation begins.)'] });
  }
  if (out.at(-1)?.role === 'assistant') closeCalls(userAt(out), out.at(-2));
  for (const [index, message] of out.entries()) {
    if (message.role !== 'user') continue;
    closeCalls(message, out[index - 1]);
    if (message.results.length === 0 && message.texts.length === 0) message.texts.push('(Please go on.)');
  }
  return out;
}

function userAt(out: PlainMessage[]): PlainMessage & { role: 'user' } {
  const last = out.at(-1);
  if (last?.role === 'user') return last;
  const made: PlainMessage & { role: 'user' } = { role: 'user', results: [], texts: [] };
  out.push(made);
  return made;
}

function addResult(out: PlainMessage[], result: { id: string; content: string; isError: boolean }): void {
  const last = out.at(-1);
  const asked = last?.role === 'user' ? out.at(-2) : last;
  if (asked?.role !== 'assistant') return;
  const answered = last?.role === 'user' ? last.results : [];
  const call = asked.calls.find(
    (candidate) => candidate.originalId === result.id && !answered.some((known) => known.id === candidate.id),
  );
  if (!call) return;
  const content = isBlank(result.content) ? '(no output)' : wellFormed(result.content);
  userAt(out).results.push({ id: call.id, content, isError: result.isError });
}

/** Gives a result to every call that has none, in the order of the calls. */
function closeCalls(user: PlainMessage & { role: 'user' }, asked: PlainMessage | undefined): void {
  if (asked?.role !== 'assistant') return;
  user.results = asked.calls.map(
    (call) =>
      user.results.find((result) => result.id === call.id) ?? {
        id: call.id,
        content: 'No result was recorded for this call.',
        isError: true,
      },
  );
}

function addAssistant(
  out: PlainMessage[],
  message: ModelMessage & { role: 'assistant' },
  ids: (wanted: string) => string,
): void {
  const text = isBlank(message.content) ? '' : wellFormed(message.content).trimEnd();
  if (text === '' && message.toolCalls.length === 0) return;
  const calls = message.toolCalls.map((call) => ({
    id: ids(call.id),
    originalId: call.id,
    name: safeToolName(call.name),
    args: wellFormedArgs(call.args),
  }));
  const last = out.at(-1);
  if (last?.role === 'assistant' && last.calls.length === 0) {
    last.text = last.text === '' ? text : text === '' ? last.text : `${last.text}\n\n${text}`;
    last.calls = calls;
    last.state = null;
    return;
  }
  if (last?.role === 'assistant') closeCalls(userAt(out), last);
  out.push({ role: 'assistant', text, calls, state: message.providerState ?? null });
}

function idMaker(): (wanted: string) => string {
  const used = new Set<string>();
  let next = 0;
  return (wanted) => {
    let id = wanted;
    while (!SAFE_ID.test(id) || used.has(id)) {
      next += 1;
      id = `call_${next}`;
    }
    used.add(id);
    return id;
  };
}

function safeToolName(name: string): string {
  if (SAFE_NAME.test(name)) return name;
  return name.replace(/[^a-zA-Z0-9_-]+/g, '_').slice(0, 64) || 'tool';
}

/** Tools under safe names, each name once, with a schema that says it is an object. */
export function plainTools(tools: readonly ToolSpec[]): ToolSpec[] {
  const byName = new Map<string, ToolSpec>();
  for (const tool of tools) {
    const name = safeToolName(tool.name);
    if (byName.has(name)) continue;
    byName.set(name, {
      name,
      description: wellFormed(tool.description),
      parameters: { ...tool.parameters, type: 'object' },
    });
  }
  return [...byName.values()];
}

export const isBlank = (text: string): boolean => text.trim() === '';
export const wellFormed = (text: string): string => text.replace(LONE_SURROGATE, '\ufffd');

function wellFormedArgs(args: Record<string, unknown>): Record<string, unknown> {
  const text = JSON.stringify(args, (_key, value: unknown) => (typeof value === 'string' ? wellFormed(value) : value));
  return JSON.parse(text) as Record<string, unknown>;
}

/** What a model wrote as arguments; null where it is no JSON object. Nothing at all is an empty object. */
export function parseArgs(raw: string): Record<string, unknown> | null {
  if (isBlank(raw)) return {};
  try {
    const value: unknown = JSON.parse(raw);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
