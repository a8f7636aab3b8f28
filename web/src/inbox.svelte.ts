import type { Approval } from '../../core/protocol/entities.ts';
import { ApiError, api } from './api.ts';
import { background } from './notices.svelte.ts';

const EVERY_MS = 30_000;

/** All that waits for a person, over all worlds. */
class Inbox {
  approvals = $state.raw<readonly Approval[]>([]);
  /** Why the list may be old; it is asked for again. */
  problem = $state<string | null>(null);
  #isLoading = false;
  #isStale = false;

  /** One call at a time; what changes during one is asked for after it. */
  async load(): Promise<void> {
    this.#isStale = true;
    if (this.#isLoading) return;
    this.#isLoading = true;
    try {
      while (this.#isStale) {
        this.#isStale = false;
        this.approvals = await api.inbox();
        this.problem = null;
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.problem = error.message;
    } finally {
      this.#isLoading = false;
    }
  }
}

export const inbox = new Inbox();

export function refreshInbox(): void {
  background(inbox.load());
}

/** Keeps the inbox fresh while the page can be seen. Returns how to end it. */
export function watchInbox(): () => void {
  const look = (): void => {
    if (!document.hidden) refreshInbox();
  };
  const timer = setInterval(look, EVERY_MS);
  addEventListener('focus', look);
  document.addEventListener('visibilitychange', look);
  look();
  return () => {
    clearInterval(timer);
    removeEventListener('focus', look);
    document.removeEventListener('visibilitychange', look);
  };
}
