import { access, constants, readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { type Config, loadConfig } from '../core/config.ts';
import { packageRoot } from '../core/paths.ts';
import { createClient } from './client.ts';
import { findRunningServer, networkConnection, readToken } from './connect.ts';
import { checkDatabase } from './doctor-database.ts';
import { explain } from './explain.ts';
import { ExitCode, type Io, line, printJson, styleFor } from './io.ts';
import { createLog } from './log.ts';
import type { Product } from './product.ts';
import { safeText } from './safe-text.ts';

export interface DoctorFlags {
  data?: string;
  online?: boolean;
  json?: boolean;
  verbose?: boolean;
}

/** One thing that was looked at; `todo` says what to do where it is not ok. */
export interface Finding {
  name: string;
  state: 'ok' | 'warn' | 'fail';
  message: string;
  todo?: string;
}

interface Look {
  config: Config;
  running: { pid: number; url: string } | null;
}

/** Looks at everything that a start needs and changes nothing. Fails where a start would. */
export async function doctor(product: Product, io: Io, flags: DoctorFlags): Promise<ExitCode> {
  const config = loadConfig({ data: flags.data });
  const look: Look = { config, running: await findRunningServer(config.dataDir) };
  const checks = [checkNode, checkDataDir, checkToken, checkDatabase, checkServer, checkPage, checkProviders];
  const findings: Finding[] = [];
  for (const check of checks) {
    try {
      findings.push(...(await check(look)));
    } catch (error) {
      findings.push({ name: check.name.replace('check', '').toLowerCase(), state: 'fail', message: explain(error) });
    }
  }
  if (flags.online) findings.push(...(await tryProviders(product, io, look)));
  const failed = findings.some(({ state }) => state === 'fail');
  if (flags.json) printJson(io, { version: product.version, ok: !failed, findings });
  else print(io, findings);
  return failed ? ExitCode.failed : ExitCode.done;
}

function print(io: Io, findings: readonly Finding[]): void {
  const style = styleFor(io.stdout);
  const paint = { ok: style.good, warn: style.warn, fail: style.bad };
  for (const { name, state, message, todo } of findings) {
    const hint = todo === undefined ? '' : ` ${style.dim(`→ ${safeText(todo)}`)}`;
    line(io.stdout, `${paint[state](state.padEnd(4))}  ${name.padEnd(14)}  ${safeText(message)}${hint}`);
  }
}

async function checkNode(): Promise<Finding[]> {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const fits = major > 20 || (major === 20 && minor >= 19);
  if (fits) return [{ name: 'node', state: 'ok', message: process.version }];
  return [{ name: 'node', state: 'fail', message: process.version, todo: 'install Node 20.19 or newer' }];
}

async function modeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).mode & 0o777;
  } catch {
    return null; // not there
  }
}

async function checkDataDir({ config }: Look): Promise<Finding[]> {
  const name = 'data';
  const { dataDir } = config;
  const mode = await modeOf(dataDir);
  if (mode === null) {
    return [{ name, state: 'ok', message: `${dataDir} will be made by the first start` }];
  }
  if (!(await stat(dataDir)).isDirectory()) {
    return [{ name, state: 'fail', message: `${dataDir} is not a directory`, todo: 'name another with --data' }];
  }
  try {
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return [
      { name, state: 'fail', message: `${dataDir} cannot be read and written`, todo: 'give this user its rights' },
    ];
  }
  if ((mode & 0o077) !== 0 && process.platform !== 'win32') {
    const todo = `chmod 700 ${dataDir}`;
    return [{ name, state: 'warn', message: `${dataDir} is open to other users`, todo }];
  }
  return [{ name, state: 'ok', message: dataDir }];
}

async function checkToken({ config }: Look): Promise<Finding[]> {
  const name = 'token';
  if (config.token !== null) return [{ name, state: 'ok', message: 'set by PARLEY_TOKEN' }];
  const path = join(config.dataDir, 'token');
  const mode = await modeOf(path);
  if (mode === null) return [{ name, state: 'ok', message: 'will be made by the first start' }];
  if ((mode & 0o077) !== 0 && process.platform !== 'win32') {
    const todo = `chmod 600 ${path}`;
    return [{ name, state: 'warn', message: `${path} can be read by other users`, todo }];
  }
  const text = (await readFile(path, 'utf8')).trim();
  if (text === '')
    return [{ name, state: 'fail', message: `${path} is empty`, todo: 'delete it; the next start makes one' }];
  return [{ name, state: 'ok', message: path }];
}

async function checkServer({ config, running }: Look): Promise<Finding[]> {
  if (running !== null) {
    return [{ name: 'server', state: 'ok', message: `runs at ${running.url} with process id ${running.pid}` }];
  }
  const name = 'port';
  const error = await listenError(config.port, config.host);
  if (error === null) return [{ name, state: 'ok', message: `${config.port} on ${config.host} is free` }];
  const todo = 'stop what uses it, or choose another with --port or PARLEY_PORT';
  return [{ name, state: error.code === 'EADDRINUSE' ? 'warn' : 'fail', message: explain(error), todo }];
}

function listenError(port: number, host: string): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', resolve);
    probe.listen(port, host, () => probe.close(() => resolve(null)));
  });
}

async function checkPage(): Promise<Finding[]> {
  const path = join(packageRoot(), 'dist', 'web', 'index.html');
  if ((await modeOf(path)) !== null) return [{ name: 'page', state: 'ok', message: dirname(path) }];
  return [{ name: 'page', state: 'warn', message: 'the web page is not built', todo: 'npm run build' }];
}

async function checkProviders({ config }: Look): Promise<Finding[]> {
  const name = 'models';
  const set = [...config.providerEnv.keys()];
  if (set.length > 0) return [{ name, state: 'ok', message: `from the environment: ${set.join(', ')}` }];
  const stored = (await modeOf(join(config.dataDir, 'providers.json'))) !== null;
  if (stored) return [{ name, state: 'ok', message: 'set in the page; --online tries them' }];
  const todo = 'set ANTHROPIC_API_KEY or OPENAI_API_KEY, or connect one in the page';
  return [{ name, state: 'warn', message: 'none is connected; only scripted agents answer', todo }];
}

async function tryProviders(product: Product, io: Io, { config, running }: Look): Promise<Finding[]> {
  const connection =
    running === null
      ? await product.openLocal(config, createLog(io, 'error', product.secrets))
      : networkConnection(running.url, await readToken(config));
  const client = createClient(connection);
  try {
    const { providers } = await client.providers();
    const findings: Finding[] = [];
    for (const { id, configured, hint } of providers) {
      if (!configured || id === 'script') continue;
      try {
        const { ok, latencyMs, message } = await client.testProvider(id);
        const text = ok ? `answered in ${Math.round(latencyMs)} ms` : message;
        findings.push({ name: id, state: ok ? 'ok' : 'fail', message: text, ...(ok ? {} : { todo: hint }) });
      } catch (error) {
        findings.push({ name: id, state: 'fail', message: explain(error), todo: hint });
      }
    }
    return findings;
  } finally {
    await client.close();
  }
}
