import { OWNER } from '../../core/index.ts';
import type { ModelPart, ModelRequest, TokenUsage, Tool } from '../../core/ports.ts';
import type { WorldSettings } from '../../core/protocol/entities.ts';
import { promptTokens } from '../../core/world/budget.ts';
import { type Answer, openRoom, type Room } from './room.ts';

/** What a call uses in tests of usage, unless they say otherwise: 120 tokens. */
export const COUNTED: TokenUsage = { inputTokens: 100, outputTokens: 20, cachedTokens: 10, reasoningTokens: 5 };
/** Of one answer of each agent. */
export const MAX_TOKENS = 50;

/** Of every call that reached the model: the most that it could have used. */
export interface Calls {
  most: number[];
}

export function counting(calls: Calls, usage: TokenUsage | null = COUNTED, text = 'fine'): Answer {
  return async function* answer(request: ModelRequest): AsyncIterable<ModelPart> {
    calls.most.push(promptTokens(request) + request.maxTokens);
    await new Promise<void>((resolve) => setImmediate(resolve));
    yield { type: 'text', text };
    yield { type: 'finish', stop: 'end', ...(usage ? { usage } : {}) };
  };
}

/** A room whose agents may answer with at most `MAX_TOKENS`. */
export async function openCountedRoom(
  answer: Answer,
  world: Partial<WorldSettings> = {},
  more: Partial<Parameters<typeof openRoom>[0]> = {},
): Promise<Room> {
  const room = await openRoom({ agents: ['A'], answer, world, ...more });
  for (const agent of await room.parley.listAgents(OWNER, room.world)) {
    await room.parley.patchAgent(OWNER, room.world, agent.id, { limits: { maxTokens: MAX_TOKENS } });
  }
  return room;
}

/** A tool that says whether it failed. */
export function tool(
  name: string,
  effect: Tool['effect'],
  fails: (args: Record<string, unknown>) => Promise<boolean>,
): Tool {
  return {
    ...{ name, effect, description: name, parameters: { type: 'object' }, asks: 'by-permission' },
    parse: (args) => ({ ok: true, args }),
    describe: async () => ({ ok: true, question: { title: name, message: name } }),
    run: async (args) => {
      const isError = await fails(args);
      return { content: isError ? 'no such thing' : 'here it is', isError };
    },
  };
}
