import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');
export const distDir = join(root, 'dist');
export const builtMain = join(distDir, 'node', 'cli', 'main.js');
const stampFile = join(distDir, 'build.json');

const FOLDERS = ['core', 'server', 'cli', 'web', 'plugins'];
const FILES = ['package.json', 'package-lock.json', 'tsconfig.json', 'vite.config.ts', 'scripts/build.mjs'];
const LEFT_OUT = /(?:^|\/)(?:node_modules|dist)(?:\/|$)|\.test\.ts$/;

/** @param {string} folder @returns {string[]} */
function filesBelow(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name);
      if (LEFT_OUT.test(relative(root, path))) return [];
      return entry.isDirectory() ? filesBelow(path) : [path];
    });
  } catch {
    return []; // a folder that this version does not have
  }
}

/**
 * One string for the state of everything that the build reads: names, sizes and times of change.
 * A deleted file and a file older than the build change it too.
 */
export function fingerprint() {
  const hash = createHash('sha256').update(process.platform);
  const paths = [...FOLDERS.flatMap((folder) => filesBelow(join(root, folder))), ...FILES.map((f) => join(root, f))];
  for (const path of paths.sort()) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat) hash.update(`${relative(root, path)}\0${stat.size}\0${stat.mtimeMs}\n`);
  }
  return hash.digest('hex');
}

/** True when `dist` was built from the sources as they are now. */
export function isBuilt() {
  try {
    statSync(builtMain);
    return JSON.parse(readFileSync(stampFile, 'utf8')).fingerprint === fingerprint();
  } catch {
    return false;
  }
}
