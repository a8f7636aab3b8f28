/** The store’s reading half. */
import type { Chat, Message, Turn, World, WorldAgent } from '../protocol/entities.ts';
import type { StoredEvent } from '../protocol/events.ts';
import type { WorldUsage } from '../protocol/requests.ts';

/** Agents of a world in its order, with the revision that every change of the list or of one agent raises. */
export interface Roster {
  rev: number;
  world: World;
  agents: readonly WorldAgent[];
}

export interface PageQuery {
  before?: number;
  after?: number;
  /** At most 500; more is cut. */
  limit: number;
  /** The path that ends with this message; the active branch where it is left out. */
  head?: string;
}

/** What counts against a budget. */
export interface Amount {
  tokens: number;
  usd: number;
}

/** Running totals that nothing resets, and what `continue` has added to their limits. */
export interface BudgetTotals {
  chat: { spent: Amount; granted: Amount };
  world: { spent: Amount; granted: Amount };
}

export interface Directory {
  listWorlds(): Promise<World[]>;
  getWorld(world: string): Promise<World | null>;
  roster(world: string): Promise<Roster | null>;
  listChats(world: string): Promise<Chat[]>;
  getChat(world: string, chat: string): Promise<Chat | null>;
  /** Rows of a branch ascending by seq; the newest page where neither bound is given. Throws `not_found` for an unknown head. */
  messages(chat: string, page: PageQuery): Promise<{ messages: Message[]; next: number | null }>;
  getMessage(chat: string, message: string): Promise<Message | null>;
  /** Newest first, at most `limit`. */
  turns(chat: string, limit: number): Promise<Turn[]>;
  /** True when no turn of the chat is queued or running. */
  isIdle(chat: string): Promise<boolean>;
  usage(world: string): Promise<WorldUsage>;
  /** Throws AppError `not_found`. */
  budgetTotals(chat: string): Promise<BudgetTotals>;
  search(world: string, query: string, limit: number): Promise<Message[]>;
}

export interface EventLog {
  /** Events with seq > after, ascending. */
  read(world: string, after: number, limit: number): Promise<StoredEvent[]>;
  /** The newest seq of the world; null where there is no such world. */
  head(world: string): Promise<number | null>;
}
