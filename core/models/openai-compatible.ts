import type { Model } from '../ports.ts';
import { ModelError } from '../protocol/errors.ts';
import type { ProviderTarget } from './target.ts';

export function createOpenAiModel(target: ProviderTarget): Model {
  return {
    // biome-ignore lint/correctness/useYield: replaced by the adapter
    async *stream() {
      throw new ModelError('provider_unreachable', `${target.name} is not there yet`, { retryable: false });
    },
  };
}
