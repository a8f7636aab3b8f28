/** Models: one request, one stream shape. */
import type { ReasoningEffort, Usage } from '../protocol/entities.ts';
import type { ModelPrice } from '../protocol/settings.ts';

export type ModelMessage =
  | { role: 'user'; content: string }
  | {
      role: 'assistant';
      content: string;
      toolCalls: readonly { id: string; name: string; args: Record<string, unknown> }[];
      /** What the provider wants back unchanged inside one turn, such as signed thinking blocks. */
      providerState?: { provider: string; blocks: unknown };
    }
  | { role: 'tool'; results: readonly { id: string; name: string; content: string; isError: boolean }[] };

export interface ToolSpec {
  /** Matches ^[a-zA-Z0-9_-]{1,64}$ */
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

/** What the scripted model decides by; providers that talk to a real model ignore it. */
export interface Scene {
  agent: { id: string; name: string };
  /** Name of the sender of the triggering message. */
  from: string;
  /** Text of the triggering message as published. */
  text: string;
  /** How many turns this agent has had in this chat, this one included; starts at 1. */
  turn: number;
  /** Names of the other active agents of the world, in its order. */
  agents: readonly string[];
  /** Text of the last tool result of this turn, if its last step was one. */
  toolResult?: string;
}

export interface ModelRequest {
  /** The provider's own name of the model; for `script` the script. */
  model: string;
  system: string;
  messages: readonly ModelMessage[];
  tools: readonly ToolSpec[];
  maxTokens: number;
  temperature?: number;
  reasoningEffort?: Exclude<ReasoningEffort, 'inherit'>;
  scene: Scene;
}

/** Usage as the provider counted it; a provider that tells nothing leaves it out. */
export type TokenUsage = Pick<Usage, 'inputTokens' | 'outputTokens' | 'cachedTokens' | 'reasoningTokens'> & {
  /** The part of inputTokens written to the provider's cache, where that has a price of its own. */
  cacheWriteTokens?: number;
};

/** The one stream shape of all providers. Exactly one `finish` ends a good stream. */
export type ModelPart =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  /** `args` is null where the model wrote no JSON object; `raw` is what it wrote. */
  | { type: 'toolCall'; id: string; name: string; args: Record<string, unknown> | null; raw: string }
  | {
      type: 'finish';
      stop: 'end' | 'tool' | 'length' | 'refused';
      usage?: TokenUsage;
      providerState?: { provider: string; blocks: unknown };
    };

/** One attempt; the turn does the retrying. Throws `ModelError`; stops at once when the signal aborts. */
export interface Model {
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelPart>;
}

export interface Models {
  /** Throws AppError `provider_unknown` or `missing_api_key` with what to set. Loads the provider's SDK lazily. */
  resolve(provider: string): Promise<Model>;
  /** What an agent without provider and model in a world without defaults gets. */
  defaults(): { provider: string; model: string };
}

export interface Prices {
  /** Null where nobody has said what the model costs. */
  find(provider: string, model: string): ModelPrice | null;
}
