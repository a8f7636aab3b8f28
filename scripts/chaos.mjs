// Kills the built server again and again under load and checks what is left. Usage: npm run chaos [-- COUNT [SEED]]
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { tsImport } from 'tsx/esm/api';
import { distDir, root } from './sources.mjs';

const PER_DIRECTORY = 25;

/** @param {string | undefined} text @param {number} otherwise @param {string} what */
function whole(text, otherwise, what) {
  if (text === undefined) return otherwise;
  if (/^\d{1,10}$/.test(text)) return Number(text);
  console.error(`${what} must be a whole number, not ${JSON.stringify(text)}. Usage: npm run chaos -- [COUNT [SEED]]`);
  process.exit(2);
}

const count = whole(process.argv[2], 1000, 'COUNT');
const first = whole(process.argv[3], Date.now() % 1_000_000_000, 'SEED');
const built = spawnSync(process.execPath, [join(root, 'scripts', 'setup.mjs'), '--build'], { stdio: 'inherit' });
if (built.status !== 0) process.exit(1);

// A copy: a build beside a long run must not change the program under its feet.
const copy = mkdtempSync(join(root, '.build-chaos-'));
cpSync(distDir, copy, { recursive: true });
const { openLauncher } = await tsImport('../tests/chaos/server-process.ts', import.meta.url);
const { runEpisode } = await tsImport('../tests/chaos/episode.ts', import.meta.url);
const launcher = openLauncher(join(copy, 'node', 'cli', 'main.js'));

async function finish() {
  await launcher.endAll();
  rmSync(copy, { recursive: true, force: true });
}
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => finish().then(() => process.exit(130)));
}

console.log(`${count} kills, seed ${first}; again with: npm run chaos -- ${count} ${first}`);
let bad = 0;
try {
  for (let done = 0; done < count; done += PER_DIRECTORY) {
    const seed = first + done / PER_DIRECTORY;
    const kills = Math.min(PER_DIRECTORY, count - done);
    const started = Date.now();
    const report = await runEpisode({ launcher, seed, kills }).catch((/** @type {unknown} */ error) => ({
      messages: 0,
      events: 0,
      connections: 0,
      faults: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
    }));
    await launcher.endAll();
    const seconds = ((Date.now() - started) / 1000).toFixed(0);
    console.log(
      `seed ${seed}: ${done + kills} of ${count} kills, ${report.messages} messages, ${report.events} events, ${report.connections} connections, ${seconds} s: ${report.faults.length} faults`,
    );
    for (const fault of report.faults) console.log(`  ${fault}`);
    bad += report.faults.length;
  }
} finally {
  await finish();
}
console.log(bad === 0 ? 'nothing lost, nothing doubled' : `${bad} faults`);
process.exitCode = bad === 0 ? 0 : 1;
