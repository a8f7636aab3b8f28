/** The providers that exist: names, variables, addresses, models. The one place to change a default model. */

export type Protocol = 'anthropic' | 'openai' | 'script';

export interface ProviderSpec {
  id: string;
  name: string;
  protocol: Protocol;
  keyVariable: string | null;
  /** True where a call without a key cannot work at the default address. */
  needsKey: boolean;
  urlVariable: string | null;
  /** Null: there is no address until a person sets one. */
  defaultUrl: string | null;
  /** Known to work; the first is the default. Any other name is sent as written. */
  models: readonly string[];
}

export const PROVIDERS: readonly ProviderSpec[] = [
  {
    id: 'anthropic',
    name: 'Anthropic',
    protocol: 'anthropic',
    keyVariable: 'ANTHROPIC_API_KEY',
    needsKey: true,
    urlVariable: 'ANTHROPIC_BASE_URL',
    defaultUrl: 'https://api.anthropic.com',
    models: ['claude-sonnet-5-5', 'claude-haiku-5-5', 'claude-opus-5-5'],
  },
  {
    id: 'openai',
    name: 'OpenAI',
    protocol: 'openai',
    keyVariable: 'OPENAI_API_KEY',
    needsKey: true,
    urlVariable: 'OPENAI_BASE_URL',
    defaultUrl: 'https://api.openai.com/v1',
    models: ['gpt-5.4-mini', 'gpt-5.4', 'gpt-5.4-nano'],
  },
  {
    id: 'openai-compatible',
    name: 'OpenAI-compatible server',
    protocol: 'openai',
    keyVariable: 'OPENAI_API_KEY',
    needsKey: false,
    urlVariable: 'OPENAI_BASE_URL',
    defaultUrl: null,
    models: [],
  },
  {
    id: 'ollama',
    name: 'Ollama',
    protocol: 'openai',
    keyVariable: null,
    needsKey: false,
    urlVariable: 'OLLAMA_BASE_URL',
    defaultUrl: 'http://127.0.0.1:11434',
    models: ['llama3.2', 'qwen3', 'gemma3'],
  },
  {
    id: 'script',
    name: 'Script (no model)',
    protocol: 'script',
    keyVariable: null,
    needsKey: false,
    urlVariable: null,
    defaultUrl: null,
    models: [],
  },
];
