import { AppError } from '../protocol/errors.ts';
import type { Call } from './tool-batch.ts';

/** So many failures of one and the same call, one after another, end its turn. */
export const MAX_SAME_FAILURES = 3;

/** Watches the calls of one turn in their order. */
export interface Repeats {
  note(call: Call, isError: boolean): void;
  /** Throws AppError `repeated_call` after the third failure in a row of the same tool with the same arguments. */
  throwIfRepeated(): void;
}

/** `hash` is the same for the same tool and arguments, in whatever order they are written. */
export function watchRepeats(hash: (tool: string, args: Record<string, unknown>) => string): Repeats {
  let last = '';
  let failures = 0;
  let repeated: string | null = null;
  return {
    note(call, isError) {
      if (!isError) {
        failures = 0;
        last = '';
        return;
      }
      const key = call.args === null ? `${call.name} ${call.raw}` : hash(call.name, call.args);
      failures = key === last ? failures + 1 : 1;
      last = key;
      if (failures >= MAX_SAME_FAILURES) repeated ??= call.name;
    },
    throwIfRepeated() {
      if (repeated === null) return;
      throw new AppError(
        'repeated_call',
        `it called ${repeated} with the same arguments ${MAX_SAME_FAILURES} times in a row, and each failed`,
      );
    },
  };
}
