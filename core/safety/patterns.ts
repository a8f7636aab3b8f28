import { RE2JS, RE2JSException } from 're2js';

const MAX_PATTERN_CHARS = 1000;
const MAX_PROGRAM_SIZE = 5000;

/** A pattern that a person or a model wrote. Runs in time linear in the text. */
export interface Pattern {
  readonly source: string;
  test(text: string): boolean;
  /** The whole match and its groups, '' for a group that took no part; null where nothing matches. */
  groups(text: string): string[] | null;
}

export type CompiledPattern = { ok: true; pattern: Pattern } | { ok: false; problem: string };

/**
 * Compiles a foreign pattern in RE2 syntax (https://github.com/google/re2/wiki/Syntax); it matches anywhere
 * in the text. Look-around, back-references and patterns that grow too large are a `problem`.
 */
export function compilePattern(source: string): CompiledPattern {
  if (source.length > MAX_PATTERN_CHARS) {
    return { ok: false, problem: `the pattern is longer than ${MAX_PATTERN_CHARS} characters` };
  }
  try {
    const compiled = RE2JS.compile(source);
    if (compiled.programSize() > MAX_PROGRAM_SIZE) {
      return { ok: false, problem: 'the pattern is too large; lower its repeat counts' };
    }
    return { ok: true, pattern: wrap(source, compiled) };
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    return { ok: false, problem: explain(source, error.message) };
  }
}

function wrap(source: string, compiled: RE2JS): Pattern {
  return {
    source,
    test: (text) => compiled.test(text),
    groups: (text) => {
      const matcher = compiled.matcher(text);
      if (!matcher.find()) return null;
      return Array.from({ length: compiled.groupCount() + 1 }, (_, index) => matcher.group(index) ?? '');
    },
  };
}

function explain(source: string, message: string): string {
  if (/\(\?<?[=!]/.test(source)) return 'look-around such as (?=…) is not supported, patterns run in linear time';
  if (/\\[1-9]/.test(source) || /\\k</.test(source)) {
    return 'back-references such as \\1 are not supported, patterns run in linear time';
  }
  return message.replace(/^error parsing regexp: /, '');
}
