const SHORTEST = 8;
const MASK = '[redacted]';

/** Values that must never leave the process, such as keys and tokens. */
export interface Secrets {
  /** Remembers a value, for the life of the process. Values under eight characters are left out: they would mask words. */
  add(value: string): void;
  /** Masks every known value, also as it stands in a URL. */
  redact(text: string): string;
}

/** Makes an empty set. Longer values are masked first, so that a value inside another leaves no rest. */
export function createSecrets(): Secrets {
  let values: string[] = [];
  return {
    add(value) {
      if (value.length < SHORTEST) return;
      const forms = [value, encodeURIComponent(value)].filter((form) => !values.includes(form));
      values = [...values, ...new Set(forms)].sort((a, b) => b.length - a.length);
    },
    redact: (text) => values.reduce((masked, value) => masked.replaceAll(value, MASK), text),
  };
}
