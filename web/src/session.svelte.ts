import { ApiError, api, onUnauthorized, type Session } from './api.ts';
import { reportError } from './notices.svelte.ts';

type SessionState =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'open'; readonly session: Session }
  | { readonly kind: 'closed'; readonly message: string; readonly tokenFile: string | null }
  | { readonly kind: 'unreachable'; readonly message: string };

const TOKEN = /^#token=(.+)$/;

/** Who uses the page. */
class PageSession {
  state = $state.raw<SessionState>({ kind: 'unknown' });
  readonly role = $derived(this.state.kind === 'open' ? this.state.session.role : 'viewer');
  readonly canTalk = $derived(this.role !== 'viewer');
  readonly isOwner = $derived(this.role === 'owner');

  constructor() {
    onUnauthorized((error) => this.#closed(error));
  }

  /** Uses a token in the address and takes it out of there, then asks who is here. */
  async start(): Promise<void> {
    const token = TOKEN.exec(location.hash)?.[1];
    let refused: ApiError | null = null;
    if (token !== undefined) {
      history.replaceState(history.state, '', location.pathname + location.search);
      refused = await this.#trySignIn(decodeURIComponent(token));
      if (refused === null) return;
    }
    try {
      this.state = { kind: 'open', session: await api.session() };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status !== 401) this.state = { kind: 'unreachable', message: error.message };
      // That the token was wrong says more than that there is none.
      else if (refused !== null) this.#closed(refused);
    }
  }

  async #trySignIn(token: string): Promise<ApiError | null> {
    try {
      await this.signIn(token);
      return null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return error;
    }
  }

  /** Throws ApiError for a token that nobody has. */
  async signIn(token: string): Promise<void> {
    this.state = { kind: 'open', session: await api.openSession(token) };
  }

  async signOut(): Promise<void> {
    await api.closeSession();
    this.state = { kind: 'closed', message: 'You have signed out', tokenFile: null };
  }

  #closed(error: ApiError): void {
    const details = error.details as { tokenFile?: unknown } | undefined;
    const tokenFile = typeof details?.tokenFile === 'string' ? details.tokenFile : null;
    this.state = { kind: 'closed', message: error.message, tokenFile };
  }
}

export const session = new PageSession();

export function startSession(): void {
  session.start().catch(reportError);
}
