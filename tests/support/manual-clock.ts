import type { Clock } from '../../core/ports.ts';

export interface ManualClock extends Clock {
  /** Moves time on and calls what is due, in order. */
  advance(ms: number): void;
  /** Resolves when somebody waits for just `ms` from now. */
  waiting(ms: number): Promise<void>;
}

/** Time stands still until a test moves it. */
export function manualClock(start = 1_800_000_000_000): ManualClock {
  let now = start;
  let timers: { at: number; call: () => void }[] = [];
  let watchers: { ms: number; resolve: () => void }[] = [];
  const add = (ms: number, call: () => void) => {
    const timer = { at: now + ms, call };
    timers.push(timer);
    watchers = watchers.filter((watcher) => {
      if (ms !== watcher.ms) return true;
      watcher.resolve();
      return false;
    });
    return () => {
      timers = timers.filter((other) => other !== timer);
    };
  };
  return {
    now: () => now,
    after: add,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const cancel = add(ms, resolve);
        signal?.addEventListener(
          'abort',
          () => {
            cancel();
            reject(signal.reason);
          },
          { once: true },
        );
      }),
    advance(ms) {
      now += ms;
      const due = timers.filter((timer) => timer.at <= now).sort((a, b) => a.at - b.at);
      timers = timers.filter((timer) => timer.at > now);
      for (const timer of due) timer.call();
    },
    waiting: (ms) =>
      timers.some((timer) => timer.at - now === ms)
        ? Promise.resolve()
        : new Promise((resolve) => {
            watchers.push({ ms, resolve });
          }),
  };
}
