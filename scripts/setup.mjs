// Makes a fresh clone ready with Node's built-ins only. Usage: node scripts/setup.mjs [--build] [--browser]
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { browserCandidates } from './browser.mjs';
import { isBuilt, root } from './sources.mjs';

const modules = join(root, 'node_modules');
const stateFile = join(modules, '.parley-setup.json');
const lockFile = join(root, '.setup.lock');
const BROWSER_RETRY_MS = 3_600_000;
const LOCK_WAIT_MS = 900_000;

/** @typedef {{ native?: string, browser?: { path: string, mtimeMs: number }, browserFailedAt?: number }} State */
/** A reason to stop that the person can act on; printed without a stack. */
class SetupError extends Error {}

/** @param {string} line */
const say = (line) => process.stderr.write(`parley setup: ${line}\n`);
export const inCi = () => !['', '0', 'false'].includes(process.env['CI'] ?? '');

/** @param {string} file @returns {any} */
function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null; // missing or half written: the same as never done
  }
}

/** @param {Partial<State>} change */
function remember(change) {
  mkdirSync(modules, { recursive: true });
  const temporary = `${stateFile}.${process.pid}`;
  writeFileSync(temporary, JSON.stringify({ ...readJson(stateFile), ...change }));
  renameSync(temporary, stateFile);
}

/**
 * Runs a program with its output on our standard error.
 * @param {string} command @param {string[]} args @param {Record<string, string>} [env]
 */
function run(command, args, env = {}) {
  const shell = process.platform === 'win32'; // npm is a .cmd there
  const result = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell,
    env: { ...process.env, ...env },
  });
  return result.status === 0;
}

/** Node's headers, where its distribution brings them, save node-gyp a download. */
function nodeHeaders() {
  const prefix = join(dirname(process.execPath), '..');
  const known = process.env['npm_config_nodedir'] ?? '';
  const has = existsSync(join(prefix, 'include', 'node', 'node_api.h'));
  return known === '' && has ? { npm_config_nodedir: prefix } : {};
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw new SetupError(`Node 20.19 or newer is needed, this is ${process.version}`);
}

/** True when every package of the lock file, development ones included, is installed in its version. */
function isInstalled() {
  const wanted = readJson(join(root, 'package-lock.json'))?.packages;
  const present = readJson(join(modules, '.package-lock.json'))?.packages;
  const manifest = readJson(join(root, 'package.json'));
  if (!present) return false;
  if (!wanted) return true;
  const rootOf = (/** @type {any} */ p) => JSON.stringify([p?.dependencies ?? {}, p?.devDependencies ?? {}]);
  if (rootOf(wanted['']) !== rootOf(manifest)) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true;
    const found = present[path];
    return found ? found.version === entry.version : Boolean(entry.optional);
  });
}

function install() {
  if (isInstalled()) return;
  say('installing packages; the first time compiles better-sqlite3, which takes a minute or two');
  // Development packages build the product, so NODE_ENV=production must not leave them out.
  const args = ['--include=dev', '--no-audit', '--no-fund', '--loglevel=error'];
  if (run('npm', ['ci', ...args], nodeHeaders())) return;
  say('npm ci failed, trying npm install');
  if (run('npm', ['install', ...args], nodeHeaders())) return;
  throw new SetupError('the packages could not be installed: see the lines above');
}

/** Changes when Node or the compiled file does. */
function nativeKey() {
  const file = join(modules, 'better-sqlite3', 'build', 'Release', 'better_sqlite3.node');
  const mtimeMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return [process.versions.modules, process.version, process.platform, process.arch, mtimeMs].join(' ');
}

/** Tried in a process of its own: a module that fails to load cannot be loaded again in the same one. */
function nativeLoads() {
  const probe = "new (require('better-sqlite3'))(':memory:').prepare('SELECT 1').get()";
  return spawnSync(process.execPath, ['-e', probe], { cwd: root, stdio: 'ignore' }).status === 0;
}

/** @param {string} name */
function onPath(name) {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, name)));
}

function isNativeReady() {
  return readJson(stateFile)?.native === nativeKey();
}

function prepareNative() {
  if (isNativeReady()) return;
  if (!nativeLoads()) {
    say(`compiling better-sqlite3 for Node ${process.version}, which takes a minute or two`);
    run('npm', ['rebuild', 'better-sqlite3', '--ignore-scripts=false', '--loglevel=error'], nodeHeaders());
    if (!nativeLoads()) {
      const missing = ['python3', 'make', 'g++'].filter((tool) => !onPath(tool));
      const which = missing.length === 0 ? '' : `; not found here: ${missing.join(', ')}`;
      throw new SetupError(`better-sqlite3 does not load; to compile it, python3, make and g++ are needed${which}`);
    }
  }
  remember({ native: nativeKey() });
}

function build() {
  if (isBuilt()) return;
  say('building');
  if (!run(process.execPath, [join(root, 'scripts', 'build.mjs')])) throw new SetupError('the build failed: see above');
}

/** Some distributions ship a script under the browser's name that only tells how to install it. */
function starts(/** @type {string} */ path) {
  const probe = spawnSync(path, ['--version'], {
    encoding: 'utf8',
    timeout: 20_000,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return probe.status === 0 && /\d+\.\d+/.test(probe.stdout);
}

/** The browser for the tests, or null. A browser that once started is not tried again until it changes. */
export function findBrowser() {
  const known = readJson(stateFile)?.browser;
  for (const path of browserCandidates()) {
    const mtimeMs = statSync(path).mtimeMs;
    if (known?.path === path && known.mtimeMs === mtimeMs) return path;
    if (!starts(path)) continue;
    remember({ browser: { path, mtimeMs } });
    return path;
  }
  return null;
}

function installBrowser() {
  say('no Chromium found for the browser tests, installing one');
  const debian = process.getuid?.() === 0 && onPath('apt-get');
  if (debian) {
    const quiet = { DEBIAN_FRONTEND: 'noninteractive' };
    const apt = ['-q', '-y', '-o', 'DPkg::Lock::Timeout=120'];
    const packages = ['chromium', 'fonts-liberation'];
    run('apt-get', [...apt, 'update'], quiet);
    run('apt-get', [...apt, 'install', '--no-install-recommends', ...packages], quiet);
    const found = findBrowser();
    if (found) return found;
  }
  const cli = join(modules, 'playwright-core', 'cli.js');
  const withLibraries = debian && run(process.execPath, [cli, 'install', '--with-deps', 'chromium']);
  if (!withLibraries) run(process.execPath, [cli, 'install', 'chromium']);
  return findBrowser();
}

function browserTriedLately() {
  const at = readJson(stateFile)?.browserFailedAt ?? 0;
  return Date.now() - at < BROWSER_RETRY_MS;
}

function prepareBrowser() {
  if (findBrowser()) return;
  const wrong = process.env['CHROME_PATH'];
  if (!wrong && (inCi() || !browserTriedLately())) {
    if (installBrowser()) return;
    remember({ browserFailedAt: Date.now() });
  }
  const why = wrong ? `CHROME_PATH does not start: ${wrong}` : 'no Chromium found and none could be installed';
  if (inCi()) throw new SetupError(`${why}; the browser tests need one in CI`);
  say(`${why}; the browser tests will be skipped`);
}

/** @param {() => void} work */
function alone(work) {
  const giveUp = Date.now() + LOCK_WAIT_MS;
  let told = false;
  for (;;) {
    try {
      writeFileSync(lockFile, String(process.pid), { flag: 'wx' });
      break;
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error;
    }
    if (holderIsGone()) continue;
    if (Date.now() > giveUp)
      throw new SetupError(`another set-up has been running for long; remove ${lockFile} if not`);
    if (!told) say('waiting for another set-up to finish');
    told = true;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  }
  try {
    work();
  } finally {
    rmSync(lockFile, { force: true });
  }
}

/** Removes the lock of a process that died. */
function holderIsGone() {
  const stat = statSync(lockFile, { throwIfNoEntry: false });
  if (!stat) return true;
  const pid = Number(readFileSync(lockFile, 'utf8').trim() || '0');
  if (pid === 0) {
    if (Date.now() - stat.mtimeMs < 5_000) return false; // just made, not yet written
  } else {
    try {
      process.kill(pid, 0);
      return false;
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM') return false;
    }
  }
  // Renamed first: of two that see the dead holder only one gets the file.
  const taken = `${lockFile}.${process.pid}`;
  try {
    renameSync(lockFile, taken);
  } catch {
    return true;
  }
  rmSync(taken, { force: true });
  return true;
}

/**
 * Installs, compiles and builds what is missing; quick when nothing is. Speaks on standard error only.
 * @param {{ build?: boolean, browser?: boolean }} want
 */
export function setup(want) {
  checkNode();
  if (!isInstalled() || !isNativeReady() || (want.build && !isBuilt())) {
    alone(() => {
      install();
      prepareNative();
      if (want.build) build();
    });
  }
  if (want.browser && !findBrowser()) alone(prepareBrowser);
}

/** Runs `work` and ends the process with one line where the person has to do something. @param {() => void} work */
export function orExplain(work) {
  try {
    work();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
    process.exit(1);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const flags = process.argv.slice(2);
  orExplain(() => setup({ build: flags.includes('--build'), browser: flags.includes('--browser') }));
}
