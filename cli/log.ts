import { pino } from 'pino';
import type { Log } from '../core/ports.ts';
import type { Secrets } from '../core/safety/redact.ts';
import { type Io, type Style, styleFor } from './io.ts';
import { safeText } from './safe-text.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
const ORDER: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** JSON lines on standard error for programs, short ones for people. Written at once: nothing is lost at an exit. */
export function createLog(io: Io, level: LogLevel, secrets: Secrets): Log {
  const write = (text: string) => {
    io.stderr.write(secrets.redact(text));
  };
  if (io.stderr.isTTY) return shortLines(write, styleFor(io.stderr), level);
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write });
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
  };
}

function shortLines(out: (text: string) => void, style: Style, level: LogLevel): Log {
  const paint = { debug: style.dim, info: style.dim, warn: style.warn, error: style.bad };
  const write = (at: LogLevel) => (fields: Record<string, unknown>, message: string) => {
    if (ORDER.indexOf(at) < ORDER.indexOf(level)) return;
    const details = Object.entries(fields).map(([name, value]) => `${name}=${shown(value)}`);
    const time = new Date().toTimeString().slice(0, 8);
    const text = safeText([message, ...details].join(' '));
    out(`${style.dim(time)} ${paint[at](at.padEnd(5))} ${text}\n`);
  };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

function shown(value: unknown): string {
  if (value instanceof Error) return value.stack ?? value.message;
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
}
