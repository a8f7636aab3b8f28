/** Counts wrong tokens per address within a minute; bounded, so that many addresses cannot fill the memory. */
export interface FailureLimit {
  isBlocked(address: string): boolean;
  failed(address: string): void;
}

const WINDOW_MS = 60_000;
const MAX_ADDRESSES = 10_000;

/** After `max` failures an address is blocked until a minute after the first of them. */
export function failureLimit(max: number, now: () => number): FailureLimit {
  const failures = new Map<string, { count: number; since: number }>();
  const current = (address: string) => {
    const entry = failures.get(address);
    if (entry !== undefined && now() - entry.since >= WINDOW_MS) {
      failures.delete(address);
      return undefined;
    }
    return entry;
  };
  return {
    isBlocked: (address) => (current(address)?.count ?? 0) >= max,
    failed(address) {
      const entry = current(address);
      if (entry !== undefined) {
        entry.count += 1;
        return;
      }
      if (failures.size >= MAX_ADDRESSES) {
        const oldest = failures.keys().next();
        if (!oldest.done) failures.delete(oldest.value);
      }
      failures.set(address, { count: 1, since: now() });
    },
  };
}
