/** Counts the turns of one process, over all its chats. */
export interface Slots {
  /** Takes up to `n`; answers how many it got. */
  take(n: number): number;
  give(n: number): void;
  /** Resolves when a slot is free. */
  freed(): Promise<void>;
}

export function openSlots(total: number): Slots {
  let free = total;
  let waiting: (() => void)[] = [];
  return {
    take(n) {
      const taken = Math.max(0, Math.min(n, free));
      free -= taken;
      return taken;
    },
    give(n) {
      free += n;
      if (free <= 0) return;
      const woken = waiting;
      waiting = [];
      for (const resolve of woken) resolve();
    },
    freed() {
      if (free > 0) return Promise.resolve();
      return new Promise((resolve) => {
        waiting.push(resolve);
      });
    },
  };
}
