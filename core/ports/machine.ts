/** The machine and the live bus. */
import type { Role } from '../protocol/entities.ts';
import type { WorldEvent } from '../protocol/events.ts';

export interface Clock {
  /** Milliseconds since 1970; may jump. Order is `seq`, never this. */
  now(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after `ms`; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

export interface Ids {
  /** A fresh URL-safe id; `kind` is a short prefix such as `m` for messages. */
  make(kind: string): string;
}

export interface Log {
  debug(fields: Record<string, unknown>, message: string): void;
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

/** Who calls: set by the server from the authenticated token, never from a client's field. */
export interface Actor {
  tokenId: string;
  role: Role;
  /** The person's name in the room. */
  name: string;
}

/** Carries events to whoever listens now. Losing one costs latency, never data: the log has it. */
export interface Bus {
  publish(event: WorldEvent): void;
  /** Returns the function that unsubscribes. A handler must not throw. */
  subscribe(world: string, handler: (event: WorldEvent) => void): () => void;
}

/** The text of a running turn so far, for a late joiner. */
export interface LiveText {
  chat: string;
  turnId: string;
  agentId: string;
  runId: string;
  /** The index that the next delta will have. */
  nextIndex: number;
  text: string;
  reasoning: string;
}
