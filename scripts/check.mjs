// npm run check: format, lint, types, page types, layout rules, dead code. All run; any finding fails.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { root } from './sources.mjs';

const bin = (/** @type {string} */ name) => join(root, 'node_modules', '.bin', name);
const node = process.execPath;
/** @type {[name: string, command: string, args: string[]][]} */
const steps = [
  ['types', bin('tsc'), ['-p', '.', '--noEmit']],
  ['format and lint', bin('biome'), ['ci', '--colors=off', '--error-on-warnings', '.']],
  ['layout', node, ['scripts/check-imports.mjs']],
  ['dead code', bin('knip'), ['--no-progress']],
];
if (existsSync(join(root, 'web', 'tsconfig.json'))) {
  const args = ['--tsconfig', 'web/tsconfig.json', '--fail-on-warnings', '--output', 'human'];
  steps.splice(1, 0, ['page types', bin('svelte-check'), args]);
}

/** @param {string} command @param {string[]} args @returns {Promise<{ ok: boolean, output: string, ms: number }>} */
function run(command, args) {
  return new Promise((resolve) => {
    const started = Date.now();
    const chunks = /** @type {Buffer[]} */ ([]);
    const child = spawn(command, args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1' },
    });
    child.stdout.on('data', (chunk) => chunks.push(chunk));
    child.stderr.on('data', (chunk) => chunks.push(chunk));
    const end = (/** @type {boolean} */ ok, /** @type {string} */ more = '') =>
      resolve({ ok, output: Buffer.concat(chunks).toString('utf8') + more, ms: Date.now() - started });
    child.on('error', (error) => end(false, error.message));
    child.on('close', (code) => end(code === 0));
  });
}

const queue = steps[Symbol.iterator]();
let failed = 0;
async function worker() {
  for (const [name, command, args] of queue) {
    const { ok, output, ms } = await run(command, args);
    const line = `${ok ? 'ok  ' : 'FAIL'} ${name} (${(ms / 1000).toFixed(1)} s)`;
    console.log(ok ? line : `${line}\n${output.trimEnd()}\n`);
    if (!ok) failed += 1;
  }
}
await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, worker));
console.log(failed === 0 ? 'check: nothing found' : `check: ${failed} of ${steps.length} steps found something`);
process.exitCode = failed === 0 ? 0 : 1;
