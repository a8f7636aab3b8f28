import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { AppError } from './protocol/errors.ts';

/** What a person may set, already checked. The only file that reads `process.env`. */
export interface Config {
  dataDir: string;
  host: string;
  /** 0 picks a free one. */
  port: number;
  /** Set by the person; otherwise made at first start and kept in the data directory. */
  token: string | null;
  auth: boolean;
  databasePath: string;
  /** Host names beyond loopback that may reach the server. */
  allowedHosts: readonly string[];
  /** Most tokens of one answer. */
  maxTokens: number;
  /** Variables of the model providers, by name. */
  providerEnv: ReadonlyMap<string, string>;
}

export interface ConfigFlags {
  data?: string | undefined;
  host?: string | undefined;
  port?: string | undefined;
  auth?: boolean | undefined;
}

const PROVIDER_VARIABLES = [
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_BASE_URL',
  'OPENAI_API_KEY',
  'OPENAI_BASE_URL',
  'OLLAMA_BASE_URL',
] as const;

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '::1']);

function integer(text: string, name: string, min: number, max: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw new AppError('invalid', `${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`);
  }
  return value;
}

/** Flags beat the environment, the environment beats the defaults. Throws AppError `invalid` that names the setting. */
export function loadConfig(flags: ConfigFlags, env: Record<string, string | undefined> = process.env): Config {
  const set = (name: string): string | undefined => env[name]?.trim() || undefined;
  const dataDir = resolve(flags.data ?? set('PARLEY_DATA') ?? join(homedir(), '.parley'));
  const host = flags.host ?? set('PARLEY_HOST') ?? '127.0.0.1';
  const port =
    flags.port === undefined
      ? integer(set('PARLEY_PORT') ?? '3000', 'PARLEY_PORT', 0, 65_535)
      : integer(flags.port, '--port', 0, 65_535);
  const auth = flags.auth ?? true;
  if (!auth && !LOOPBACK.has(host)) {
    throw new AppError('invalid', `--no-auth works on a loopback address only, not on ${host}`);
  }
  const token = set('PARLEY_TOKEN') ?? null;
  if (token !== null && (token.length < 16 || !/^[\w.~-]+$/.test(token))) {
    throw new AppError('invalid', 'PARLEY_TOKEN must have at least 16 letters, digits or any of . _ ~ -');
  }
  const url = set('PARLEY_DATABASE_URL');
  if (url !== undefined && /^[a-z][a-z0-9+.-]*:\/\//i.test(url)) {
    throw new AppError('invalid', 'PARLEY_DATABASE_URL must be the path of a SQLite file in this version');
  }
  if (set('PARLEY_BUS_URL') !== undefined) {
    throw new AppError('invalid', 'PARLEY_BUS_URL is not supported in this version: the live bus is in process');
  }
  const databasePath = url === undefined ? join(dataDir, 'parley.db') : isAbsolute(url) ? url : join(dataDir, url);
  return {
    dataDir,
    host,
    port,
    token,
    auth,
    databasePath,
    allowedHosts: (set('PARLEY_ALLOWED_HOSTS') ?? '').split(/[\s,]+/).filter((name) => name !== ''),
    maxTokens: integer(set('PARLEY_MAX_TOKENS') ?? '4096', 'PARLEY_MAX_TOKENS', 1, 1_000_000),
    providerEnv: new Map(
      PROVIDER_VARIABLES.flatMap((name) => {
        const value = set(name);
        return value === undefined ? [] : [[name, value] as const];
      }),
    ),
  };
}

/** What the environment says about the person in front of the machine. */
export interface Surroundings {
  /** An automatic run: nobody watches. */
  ci: boolean;
  /** A browser window could be opened where the person sees it. */
  desktop: boolean;
}

export function readSurroundings(
  env: Record<string, string | undefined> = process.env,
  platform: string = process.platform,
): Surroundings {
  const has = (name: string) => (env[name] ?? '') !== '';
  const ci = !['', '0', 'false'].includes(env['CI'] ?? '');
  const remote = has('SSH_CONNECTION') || has('SSH_TTY');
  const display = has('DISPLAY') || has('WAYLAND_DISPLAY');
  return { ci, desktop: !ci && !remote && (platform === 'darwin' || platform === 'win32' || display) };
}
