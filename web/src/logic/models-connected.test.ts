import { expect, it } from 'vitest';
import type { ProviderStatus } from '../../../core/protocol/entities.ts';
import { agent } from '../testing/fixtures.ts';
import { modelState } from './models-connected.ts';

const providers = [
  { id: 'script', configured: true },
  { id: 'anthropic', configured: false },
  { id: 'openai', configured: true },
] as ProviderStatus[];
const kind = (world: string | null, ...of: (string | null)[]): string =>
  modelState(
    { chatLLMProvider: world },
    of.map((provider, index) => agent(`a${index}`, { provider })),
    providers,
  ).kind;

it('says plainly when agents answer from a script, or cannot answer', () => {
  expect(kind(null, 'script', 'script')).toBe('scripted');
  expect(kind(null, null)).toBe('missing');
  expect(kind('anthropic', null)).toBe('missing');
  expect(kind('openai', null, 'script')).toBe('ready');
  expect(kind('openai', 'nonsense')).toBe('missing');
  expect(kind(null)).toBe('ready');
});

it('does not ask for a model for an agent that is muted', () => {
  expect(modelState({ chatLLMProvider: null }, [agent('a', { status: 'inactive' })], providers).kind).toBe('ready');
});
