import type { Readable, Writable } from 'node:stream';
import { styleText } from 'node:util';

type Output = Writable & { isTTY?: boolean; columns?: number; hasColors?: () => boolean };

/** The three streams of a command; tests give their own. */
export interface Io {
  stdin: Readable & { isTTY?: boolean };
  stdout: Output;
  stderr: Output;
}

export const ExitCode = { done: 0, failed: 1, usage: 2, approval: 3, limit: 4, interrupted: 130 } as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** An end that the person can act on: one line on standard error, no stack. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = ExitCode.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

const AUTHOR_COLOURS = [
  'cyan',
  'green',
  'magenta',
  'yellow',
  'blue',
  'cyanBright',
  'greenBright',
  'magentaBright',
] as const;
type Format = Parameters<typeof styleText>[0];

export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  good(text: string): string;
  warn(text: string): string;
  bad(text: string): string;
  /** The same agent has the same colour everywhere. */
  author(id: string, text: string): string;
}

/** Colours on a terminal that has them; `NO_COLOR`, `FORCE_COLOR` and `TERM` are honoured by `hasColors`. */
export function styleFor(output: Output): Style {
  const on = output.isTTY === true && (output.hasColors?.() ?? false);
  const apply = (format: Format, text: string) => (on ? styleText(format, text) : text);
  return {
    bold: (text) => apply('bold', text),
    dim: (text) => apply('dim', text),
    good: (text) => apply('green', text),
    warn: (text) => apply('yellow', text),
    bad: (text) => apply('red', text),
    author: (id, text) => {
      let sum = 0;
      for (const character of id) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 65_521;
      return apply(['bold', AUTHOR_COLOURS[sum % AUTHOR_COLOURS.length] ?? 'cyan'] as Format, text);
    },
  };
}

export function line(output: Output, text: string): void {
  output.write(`${text}\n`);
}

export function printJson(io: Io, value: unknown): void {
  line(io.stdout, JSON.stringify(value, null, io.stdout.isTTY ? 2 : undefined));
}
