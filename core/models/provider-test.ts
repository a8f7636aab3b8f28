import type { Clock, Model } from '../ports.ts';
import { AppError } from '../protocol/errors.ts';
import type { ProviderTest } from '../protocol/requests.ts';

const TEST_TIMEOUT_MS = 30_000;

/** Asks the model to say one word. Any AppError becomes an answer that is not ok; the signal's reason is thrown. */
export async function tryModel(
  resolve: () => Promise<Model>,
  target: { name: string; model: string },
  clock: Clock,
  signal: AbortSignal,
): Promise<ProviderTest> {
  const started = performance.now();
  const answer = (ok: boolean, message: string, error?: string): ProviderTest => ({
    ok,
    model: target.model,
    latencyMs: Math.round(performance.now() - started),
    ...(error === undefined ? {} : { error }),
    message,
  });
  if (target.model === '') return answer(false, `Name a model of ${target.name} to test`, 'invalid');
  const deadline = new AbortController();
  const cancel = clock.after(TEST_TIMEOUT_MS, () =>
    deadline.abort(
      new AppError('provider_timeout', `${target.name} did not finish within ${TEST_TIMEOUT_MS / 1000} s`),
    ),
  );
  try {
    const model = await resolve();
    const text = await say(model, target.model, AbortSignal.any([signal, deadline.signal]));
    return answer(true, text === '' ? `${target.name} works` : `${target.name} answered: ${text}`);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AppError) return answer(false, error.message, error.code);
    throw error;
  } finally {
    cancel();
  }
}

async function say(model: Model, name: string, signal: AbortSignal): Promise<string> {
  const prompt = 'Reply with the single word: ready';
  const request = {
    model: name,
    system: 'This is a connection test. Answer with one word.',
    messages: [{ role: 'user' as const, content: prompt }],
    tools: [],
    // Reasoning models spend part of this before their first word.
    maxTokens: 512,
    scene: { agent: { id: 'test', name: 'Test' }, from: 'test', text: prompt, turn: 1, agents: [] },
  };
  let text = '';
  for await (const part of model.stream(request, signal)) {
    if (part.type === 'text') text += part.text;
  }
  const trimmed = text.trim().replace(/\s+/g, ' ');
  return trimmed.length > 200 ? `${trimmed.slice(0, 200)}…` : trimmed;
}
