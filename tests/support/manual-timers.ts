/** Timers that fire when a test says so. */
export interface ManualTimers {
  after(ms: number, callback: () => void): () => void;
  now(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Waits of the timers that are set, ascending. */
  pending(): number[];
  /** Resolves when a timer with this wait is set; fires it. */
  fire(ms: number): Promise<void>;
}

export function manualTimers(now = Date.parse('2026-01-01T00:00:00Z')): ManualTimers {
  const timers = new Map<number, { ms: number; callback: () => void }>();
  const waiting: { ms: number; resolve: () => void }[] = [];
  let next = 0;

  function take(ms: number): (() => void) | null {
    for (const [id, timer] of timers) {
      if (timer.ms !== ms) continue;
      timers.delete(id);
      return timer.callback;
    }
    return null;
  }

  return {
    now: () => now,
    after(ms, callback) {
      next += 1;
      const id = next;
      timers.set(id, { ms, callback });
      const at = waiting.findIndex((waiter) => waiter.ms === ms);
      if (at >= 0) waiting.splice(at, 1)[0]?.resolve();
      return () => timers.delete(id);
    },
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        const cancel = this.after(ms, resolve);
        signal?.addEventListener('abort', () => {
          cancel();
          reject(signal.reason);
        });
      });
    },
    pending: () => [...timers.values()].map((timer) => timer.ms).sort((a, b) => a - b),
    async fire(ms) {
      let callback = take(ms);
      while (callback === null) {
        await new Promise<void>((resolve) => waiting.push({ ms, resolve }));
        callback = take(ms);
      }
      callback();
    },
  };
}
