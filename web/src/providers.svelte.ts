import type { ProviderStatus } from '../../core/protocol/entities.ts';
import { api } from './api.ts';
import { background } from './notices.svelte.ts';
import { untilReached } from './until-reached.ts';

/** The providers of the server, shared by the banner and the dialogs. */
class Providers {
  list = $state.raw<readonly ProviderStatus[] | null>(null);

  load(): void {
    background(untilReached(() => this.reload()));
  }

  async reload(): Promise<void> {
    this.list = await api.providers();
  }

  put(provider: ProviderStatus): void {
    this.list = (this.list ?? []).map((one) => (one.id === provider.id ? provider : one));
  }
}

export const providers = new Providers();
