/** Calls of the real adapters against a stub, for their tests. */
import { createAnthropicModel } from '../../core/models/anthropic.ts';
import { createOpenAiModel } from '../../core/models/openai-compatible.ts';
import type { Model, ModelPart, ModelRequest } from '../../core/ports.ts';
import { ModelError } from '../../core/protocol/errors.ts';
import { createSecrets } from '../../core/safety/redact.ts';
import { type ManualTimers, manualTimers } from './manual-timers.ts';
import {
  anthropicEvents,
  openAiEvents,
  type ProviderStub,
  type StubAnswer,
  type StubProtocol,
  type StubReply,
  type StubRequest,
  startProviderStub,
} from './provider-stub.ts';

export const KEY = 'sk-very-secret-key-123';
const stubs: ProviderStub[] = [];

/** For `afterEach`: closes every stub that `startProvider` made. */
export async function closeProviders(): Promise<void> {
  await Promise.all(stubs.splice(0).map((stub) => stub.close()));
}

export const PROTOCOLS: StubProtocol[] = ['anthropic', 'openai'];
export const eventsOf = (protocol: StubProtocol, answer: StubAnswer): string =>
  (protocol === 'anthropic' ? anthropicEvents(answer) : openAiEvents(answer)).join('');

export async function startProvider(
  protocol: StubProtocol,
  reply: (request: StubRequest, index: number) => StubReply | Promise<StubReply>,
): Promise<{ stub: ProviderStub; model: Model; timers: ManualTimers }> {
  const stub = await startProviderStub(protocol, reply);
  stubs.push(stub);
  const timers = manualTimers();
  return { stub, model: modelAt(protocol, stub.url, timers), timers };
}

export function modelAt(protocol: StubProtocol, baseUrl: string, clock: ManualTimers): Model {
  const secrets = createSecrets();
  secrets.add(KEY);
  const make = protocol === 'anthropic' ? createAnthropicModel : createOpenAiModel;
  return make({
    provider: protocol,
    name: protocol === 'anthropic' ? 'Anthropic' : 'OpenAI',
    baseUrl,
    apiKey: KEY,
    keyVariable: protocol === 'anthropic' ? 'ANTHROPIC_API_KEY' : 'OPENAI_API_KEY',
    secrets,
    clock,
    idleTimeoutMs: 60_000,
    firstByteTimeoutMs: 120_000,
  });
}

export function request(over: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: 'claude-haiku-4-5',
    system: 'You are kind.',
    messages: [{ role: 'user', content: 'Ann: hello' }],
    tools: [],
    maxTokens: 4096,
    scene: { agent: { id: 'a', name: 'A' }, from: 'Ann', text: 'hello', turn: 1, agents: [] },
    ...over,
  };
}

export async function collect(
  model: Model,
  input = request(),
  signal = new AbortController().signal,
): Promise<ModelPart[]> {
  const parts: ModelPart[] = [];
  for await (const part of model.stream(input, signal)) parts.push(part);
  return parts;
}

export async function failure(model: Model, input = request()): Promise<ModelError> {
  try {
    await collect(model, input);
  } catch (error) {
    if (error instanceof ModelError) return error;
    throw error;
  }
  throw new Error('the call did not fail');
}

/** Joins neighbouring text, so that chunking does not matter. */
export function joined(parts: readonly ModelPart[]): ModelPart[] {
  const out: ModelPart[] = [];
  for (const part of parts) {
    const last = out.at(-1);
    if ((part.type === 'text' || part.type === 'reasoning') && last?.type === part.type) {
      out[out.length - 1] = { type: part.type, text: last.text + part.text };
    } else out.push(part);
  }
  return out;
}

export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise<void>((resolve) => setImmediate(resolve));
}

export const bytes = (text: string): Uint8Array[] => Array.from(Buffer.from(text), (byte) => Uint8Array.of(byte));

export const RICH: StubAnswer = {
  think: '让我想想 🤔',
  text: 'Hi 👨‍👩‍👧‍👦, 小明! Ünïcode “quotes”\n\nand {json: "like"} \\n text',
  calls: [
    { id: 'toolu_1', name: 'Read', args: { file_path: 'ä/文件 🎉.md' } },
    { id: 'toolu_2', name: 'Glob', args: {} },
  ],
  usage: { input: 100, output: 42, cached: 60, reasoning: 0 },
};

export function richParts(protocol: StubProtocol): ModelPart[] {
  const readArgs = RICH.calls?.[0]?.args as Record<string, unknown>;
  const finish = {
    type: 'finish' as const,
    stop: 'tool' as const,
    usage: { inputTokens: 100, outputTokens: 42, cachedTokens: 60, reasoningTokens: 0 },
  };
  return [
    { type: 'reasoning', text: RICH.think ?? '' },
    { type: 'text', text: RICH.text ?? '' },
    { type: 'toolCall', id: 'toolu_1', name: 'Read', args: readArgs, raw: JSON.stringify(readArgs) },
    { type: 'toolCall', id: 'toolu_2', name: 'Glob', args: {}, raw: '{}' },
    protocol === 'openai'
      ? finish
      : {
          ...finish,
          providerState: {
            provider: 'anthropic',
            blocks: [
              { type: 'thinking', thinking: RICH.think, signature: 'c2lnbmVk' },
              { type: 'text', text: RICH.text },
              { type: 'tool_use', id: 'toolu_1', name: 'Read', input: readArgs },
              { type: 'tool_use', id: 'toolu_2', name: 'Glob', input: {} },
            ],
          },
        },
  ];
}

export const tool = (name: string) => ({ name, description: `Does ${name}`, parameters: { properties: {} } });
