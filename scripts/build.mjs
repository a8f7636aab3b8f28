// Builds the page and the program into dist, all or nothing. With --node the program alone, for work on it.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { build as bundle } from 'esbuild';
import { distDir, fingerprint, root } from './sources.mjs';

const started = Date.now();
const stamp = fingerprint(); // before reading: a file changed during the build makes the next one
process.chdir(root);
const fresh = mkdtempSync(join(root, '.build-'));
process.env['NODE_ENV'] ??= 'production';

async function buildNode() {
  await bundle({
    absWorkingDir: root,
    entryPoints: ['cli/main.ts'],
    outbase: '.',
    outdir: join(fresh, 'node'),
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    packages: 'external',
    sourcemap: true,
    sourcesContent: false,
    logLevel: 'silent', // what it finds is in the error that it throws
  });
  chmodSync(join(fresh, 'node', 'cli', 'main.js'), 0o755);
}

async function buildPage() {
  if (!existsSync(join(root, 'web', 'index.html'))) return;
  const vite = await import('vite');
  await vite.build({
    root: join(root, 'web'),
    configFile: join(root, 'vite.config.ts'),
    logLevel: 'warn',
    build: { outDir: join(fresh, 'web'), emptyOutDir: true },
  });
}

/** Puts a folder in place of another with two renames. @param {string} from @param {string} to */
function replace(from, to) {
  const old = `${fresh}-old`;
  if (existsSync(to)) renameSync(to, old);
  renameSync(from, to);
  rmSync(old, { recursive: true, force: true });
}

try {
  if (process.argv.includes('--node')) {
    await buildNode();
    rmSync(join(distDir, 'build.json'), { force: true }); // so that the next full build is not skipped
    mkdirSync(distDir, { recursive: true });
    replace(join(fresh, 'node'), join(distDir, 'node'));
    rmSync(fresh, { recursive: true });
  } else {
    await Promise.all([buildNode(), buildPage()]);
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    writeFileSync(join(fresh, 'build.json'), JSON.stringify({ version, fingerprint: stamp }));
    chmodSync(fresh, 0o755);
    replace(fresh, distDir);
  }
  process.stderr.write(`built in ${((Date.now() - started) / 1000).toFixed(1)} s\n`);
} catch (error) {
  rmSync(fresh, { recursive: true, force: true });
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
