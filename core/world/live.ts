import type { Bus, Clock, Ids, TurnWork } from '../ports.ts';

/** Chunks are joined for this long before they go out: a third of the cost of sending each. */
export const DEFAULT_JOIN_MS = 40;

/** The live text of one turn. Nothing of it is stored; the final message replaces it. */
export interface Live {
  readonly turn: TurnWork;
  push(kind: 'text' | 'reasoning', text: string): void;
  /** Begins a new execution: clients drop what they have of the old one. */
  restart(): void;
  /** Text that came before a tool call stays; what comes next stands apart from it. */
  text(): string;
  reasoning(): string;
  state(): { runId: string; nextIndex: number };
  retrying(error: { code: string; message: string }, delayMs: number): void;
  /** Sends what is still held back; nothing follows. */
  end(): void;
}

interface LiveOptions {
  bus: Bus;
  clock: Clock;
  ids: Ids;
  turn: TurnWork;
  /** 0 sends every chunk by itself. */
  joinMs: number;
}

export function openLive({ bus, clock, ids, turn, joinMs }: LiveOptions): Live {
  const told = { text: '', reasoning: '' };
  const held = { text: '', reasoning: '' };
  let runId = ids.make('x');
  let index = 0;
  let cancel: (() => void) | null = null;
  let ended = false;
  const base = () => ({ world: turn.worldId, chat: turn.chatId, at: new Date(clock.now()).toISOString() });

  function send(kind: 'text' | 'reasoning'): void {
    const text = held[kind];
    if (text === '') return;
    held[kind] = '';
    told[kind] += text;
    bus.publish({
      type: kind === 'text' ? 'message.delta' : 'reasoning.delta',
      ...base(),
      data: { turnId: turn.id, agentId: turn.agentId, runId, index: index++, text },
    });
  }
  function flush(): void {
    cancel?.();
    cancel = null;
    send('reasoning');
    send('text');
  }

  return {
    turn,
    push(kind, text) {
      if (ended || text === '') return;
      // What was thought is sent before what is said after it.
      if (kind === 'reasoning' && held.text !== '') flush();
      held[kind] += text;
      if (joinMs === 0) return flush();
      cancel ??= clock.after(joinMs, () => {
        cancel = null;
        flush();
      });
    },
    restart() {
      cancel?.();
      cancel = null;
      held.text = '';
      held.reasoning = '';
      told.text = '';
      told.reasoning = '';
      runId = ids.make('x');
      index = 0;
    },
    text: () => told.text,
    reasoning: () => told.reasoning,
    state: () => ({ runId, nextIndex: index }),
    retrying(error, delayMs) {
      bus.publish({
        type: 'turn.retrying',
        ...base(),
        data: { turnId: turn.id, agentId: turn.agentId, ...error, delayMs },
      });
    },
    end() {
      if (ended) return;
      flush();
      ended = true;
    },
  };
}
