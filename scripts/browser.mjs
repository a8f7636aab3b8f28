import { accessSync, constants, readdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'chrome'];
const MAC_APPS = ['Google Chrome.app/Contents/MacOS/Google Chrome', 'Chromium.app/Contents/MacOS/Chromium'];
/** Where Playwright's folders keep the program, by the builds that it has shipped. */
const IN_CACHE = [
  'chrome-linux64/chrome',
  'chrome-linux/chrome',
  'chrome-mac-arm64/Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing',
  'chrome-mac-x64/Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing',
  'chrome-mac/Chromium.app/Contents/MacOS/Chromium',
  'chrome-win64/chrome.exe',
  'chrome-win/chrome.exe',
];

/** @param {string} path */
function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function playwrightCache() {
  const set = process.env['PLAYWRIGHT_BROWSERS_PATH'];
  if (set && set !== '0') return set;
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Caches', 'ms-playwright');
  if (process.platform === 'win32') return join(homedir(), 'AppData', 'Local', 'ms-playwright');
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'ms-playwright');
}

function cached() {
  const cache = playwrightCache();
  /** @type {string[]} */
  let folders = [];
  try {
    folders = readdirSync(cache).filter((name) => name.startsWith('chromium-'));
  } catch {
    return []; // no cache
  }
  const revision = (/** @type {string} */ name) => Number(name.split('-')[1]);
  return folders
    .sort((a, b) => revision(b) - revision(a))
    .flatMap((folder) => IN_CACHE.map((program) => join(cache, folder, program)));
}

/**
 * Programs that may be a Chromium, best first: `CHROME_PATH` (alone, when set), the system's, Playwright's cache.
 * They exist and may be run; whether they start is not tried here.
 */
export function browserCandidates() {
  const set = process.env['CHROME_PATH'];
  if (set) return isProgram(set) ? [set] : [];
  const onPath = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .flatMap((folder) => NAMES.map((name) => join(folder, name)));
  const apps = process.platform === 'darwin' ? MAC_APPS.map((app) => join('/Applications', app)) : [];
  return [...onPath, ...apps, ...cached()].filter(isProgram);
}
