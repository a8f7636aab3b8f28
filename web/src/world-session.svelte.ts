import type { WorldEvent } from '../../core/protocol/events.ts';
import { ApiError, api } from './api.ts';
import { agentStates, isBusy } from './logic/agent-state.ts';
import { emptyRoom, isOneBranch, withNewestPage, withOlderPage, withPending, withTurns } from './logic/room.ts';
import { reduceView, viewOf, type WorldView } from './logic/world-view.ts';
import { reportError } from './notices.svelte.ts';
import { followWorld, type SocketStatus } from './socket.ts';
import { untilReached } from './until-reached.ts';

const PAGE = 60;
const OLDER_PAGE = 200;
/** Events are taken in once per frame; a page in the background has no frames. */
const HIDDEN_FRAME_MS = 100;

/** One world on the screen: a thin state over the reducer, its loads and its socket. */
export class WorldSession {
  readonly worldId: string;
  view = $state.raw<WorldView | null>(null);
  status = $state<SocketStatus>('connecting');
  /** Why the world cannot be shown. */
  problem = $state.raw<ApiError | null>(null);
  isLoadingOlder = $state(false);
  readonly states = $derived.by(() =>
    this.view ? agentStates(this.view.agents, this.view.room, this.view.live) : new Map(),
  );
  readonly isBusy = $derived(isBusy(this.view?.room ?? null));
  /** Hears every event once, in order, after it was taken in. */
  onEvents: ((events: readonly WorldEvent[]) => void) | null = null;

  #seq: number | undefined;
  #wantedChat: string | null = null;
  #isLoading = false;
  #queue: WorldEvent[] = [];
  #frame: ReturnType<typeof setTimeout> | null = null;
  #unfollow: () => void = () => {};
  #isClosed = false;

  constructor(worldId: string) {
    this.worldId = worldId;
  }

  open(): void {
    this.#unfollow = followWorld({
      world: this.worldId,
      after: () => this.#seq,
      onSubscribed: (seq) => {
        if (this.#seq !== undefined && this.view) return;
        this.#seq = seq;
        this.#background(this.#load());
      },
      onResync: () => {
        this.#seq = undefined;
        this.#queue = [];
        this.view = null;
      },
      onEvent: (event) => this.#hear(event),
      onStatus: (status) => {
        this.status = status;
        if (status === 'offline') this.#background(this.#checkSession());
      },
      onFailure: (code, message) => {
        this.problem = new ApiError(code, message, code === 'not_found' ? 404 : 0);
        if (code === 'unauthorized') this.#background(this.#checkSession());
      },
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#unfollow();
    if (this.#frame !== null) clearTimeout(this.#frame);
  }

  /** Shows another chat; null shows none. */
  openChat(chatId: string | null): void {
    this.#wantedChat = chatId;
    if (!this.view || (this.view.room?.chatId ?? null) === chatId) return;
    this.view = { ...this.view, room: chatId === null ? null : emptyRoom(chatId) };
    if (chatId !== null) this.#background(this.#loadRoom(chatId));
  }

  async loadOlder(): Promise<void> {
    const room = this.view?.room;
    if (!room || room.olderBefore === null || this.isLoadingOlder) return;
    this.isLoadingOlder = true;
    try {
      const page = await api.messages(this.worldId, room.chatId, { before: room.olderBefore, limit: OLDER_PAGE });
      const now = this.view?.room;
      if (this.view && now?.chatId === room.chatId) this.view = { ...this.view, room: withOlderPage(now, page) };
    } finally {
      this.isLoadingOlder = false;
    }
  }

  /** What a call has answered and the log will say again; shown at once. */
  takeIn(change: (view: WorldView) => WorldView): void {
    if (this.view) this.view = change(this.view);
  }

  /** The world was subscribed to before: what happens during the load waits in the queue. */
  async #load(): Promise<void> {
    this.#isLoading = true;
    try {
      const view = viewOf(await api.world(this.worldId));
      if (this.#isClosed) return;
      this.problem = null;
      this.view = view;
      this.openChat(this.#wantedChat);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#seq = undefined;
      this.problem = error;
    } finally {
      this.#isLoading = false;
      this.#schedule();
    }
  }

  async #loadRoom(chatId: string): Promise<void> {
    const isWanted = (): boolean => !this.#isClosed && this.view?.room?.chatId === chatId;
    const loaded = await untilReached(
      () =>
        Promise.all([
          api.messages(this.worldId, chatId, { limit: PAGE }),
          api.turns(this.worldId, chatId),
          api.pendingApprovals(this.worldId),
        ]),
      isWanted,
    );
    const room = this.view?.room;
    if (!loaded || !this.view || room?.chatId !== chatId) return;
    const [page, turns, pending] = loaded;
    this.view = { ...this.view, room: withPending(withTurns(withNewestPage(room, page), turns), pending) };
  }

  /** A socket that is refused cannot say why; a call can. */
  async #checkSession(): Promise<void> {
    try {
      await api.session();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // Unauthorized is heard by the whole page; that the server is away is shown already.
    }
  }

  #hear(event: WorldEvent): void {
    if ('seq' in event) {
      if (this.#seq !== undefined && event.seq <= this.#seq) return;
      this.#seq = event.seq;
    }
    this.#queue.push(event);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#frame !== null || this.#queue.length === 0 || this.#isLoading || this.#isClosed) return;
    const flush = (): void => {
      this.#frame = null;
      this.#takeQueue();
    };
    this.#frame = setTimeout(flush, document.hidden ? HIDDEN_FRAME_MS : 16);
  }

  #takeQueue(): void {
    if (!this.view) return;
    const events = this.#queue;
    this.#queue = [];
    let view = this.view;
    for (const event of events) view = reduceView(view, event);
    this.view = view;
    this.#followBranch();
    this.onEvents?.(events);
  }

  /** Reads the open chat anew where another of its branches became the active one. */
  #followBranch(): void {
    const room = this.view?.room;
    const chat = this.view?.chats.find(({ id }) => id === room?.chatId);
    if (!this.view || !room?.isLoaded || !chat || isOneBranch(room, chat.head)) return;
    this.view = { ...this.view, room: { ...room, messages: [], olderBefore: null, isLoaded: false } };
    this.#background(this.#loadRoom(room.chatId));
  }

  #background(work: Promise<void>): void {
    work.catch(reportError);
  }
}
