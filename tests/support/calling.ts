import type { ModelPart, ModelRequest } from '../../core/ports.ts';
import type { Answer } from './room.ts';

export type Calls = readonly { name: string; args: Record<string, unknown> }[];

/** A model that makes these calls once, then says what they gave. */
export function calling(calls: Calls): Answer {
  return async function* answer(request: ModelRequest): AsyncIterable<ModelPart> {
    const last = request.messages.at(-1);
    if (last?.role === 'tool') {
      yield { type: 'text', text: `got ${last.results.map((result) => result.content).join(' | ')}` };
      yield { type: 'finish', stop: 'end' };
      return;
    }
    for (const [index, call] of calls.entries()) {
      yield { type: 'toolCall', id: `c${index}`, name: call.name, args: call.args, raw: JSON.stringify(call.args) };
    }
    yield {
      type: 'finish',
      stop: 'tool',
      usage: { inputTokens: 7, outputTokens: 3, cachedTokens: 0, reasoningTokens: 0 },
    };
  };
}
