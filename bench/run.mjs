// Measures Parley beside its peers and the hand-written limit, in one interleaved run.
// node bench/run.mjs [rounds=3] [W1,W2] — needs the workloads and peers in ../shared/bench; without them only Parley is measured.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const shared = join(root, '..', 'shared', 'bench');
const scratch = join(root, '.bench');
const rounds = Number(process.argv[2] ?? 3);
const workloads = (process.argv[3] ?? 'W1,W2').split(',');

if (!existsSync(shared)) {
  console.error('bench: the workloads (../shared/bench) are missing');
  process.exit(1);
}
mkdirSync(scratch, { recursive: true });
cpSync(shared, scratch, { recursive: true, mode: 0 });
spawnSync('chmod', ['-R', 'u+w', scratch]);
mkdirSync(join(scratch, 'tmp'), { recursive: true });
const peers = join(scratch, '.bench', 'peers');
if (!existsSync(join(peers, 'base', 'node_modules'))) {
  console.error('bench: installing the peers once (some minutes)');
  spawnSync('bash', ['setup.sh'], { cwd: scratch, stdio: 'inherit' });
}

await build({
  entryPoints: [join(root, 'bench/adapter.ts')],
  outfile: join(scratch, 'parley.mjs'),
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
  logLevel: 'error',
});
writeFileSync(
  join(scratch, 'peers/product.mjs'),
  `import { SYSTEM, tick, chunksFor, W1_TURNS, W2_AGENTS } from '../lib/spec.mjs';
import { setup as open } from '../parley.mjs';
export const name = 'parley';
export const setup = () => open({ turns: W1_TURNS, agents: W2_AGENTS, chunksFor, tick, system: SYSTEM }, process.env.PERF_TMP);
`,
);

const env = {
  ...process.env,
  PERF_PEERS: peers,
  PERF_TMP: join(scratch, 'tmp'),
  LANGCHAIN_CALLBACKS_BACKGROUND: 'true',
};
const programs = [
  ['parley', 'product', {}],
  ['raw full', 'raw', { RAW: 'full' }],
  ['langgraph sqlite', 'langgraph', { CKPT: 'sqlite' }],
].filter(([, file]) => (file === 'product' || file === 'raw' ? true : existsSync(join(peers, 'langgraph'))));
const results = new Map();

function go(label, file, workload, extra, mode, flags, reps) {
  const run = spawnSync(
    process.execPath,
    [
      '--expose-gc',
      ...flags,
      join(scratch, 'lib/harness.mjs'),
      join(scratch, `peers/${file}.mjs`),
      workload,
      reps,
      mode,
    ],
    { env: { ...env, ...extra }, encoding: 'utf8', timeout: 180_000, cwd: scratch },
  );
  for (const name of readdirSync(env.PERF_TMP)) rmSync(join(env.PERF_TMP, name), { recursive: true, force: true });
  const line = run.stdout.trim().split('\n').at(-1);
  try {
    const key = `${workload} ${mode} ${label}`;
    results.set(key, [...(results.get(key) ?? []), JSON.parse(line)]);
  } catch {
    console.error(`${label} ${workload} ${mode}: ${run.stderr.slice(0, 400)}`);
  }
}

for (let round = 0; round < rounds; round++) {
  for (const workload of workloads)
    for (const [label, file, extra] of programs) go(label, file, workload, extra, 'time', [], 't2.5');
}
const big = ['--max-semi-space-size=1024', '--min-semi-space-size=1024'];
for (const workload of workloads)
  for (const [label, file, extra] of programs) go(label, file, workload, extra, 'alloc', big, '1');

const best = (key, field) => Math.min(...(results.get(key) ?? []).map((row) => row[field]));
console.log('| workload | program | CPU ms per turn | ÷ raw full | KB allocated per turn |\n|---|---|---|---|---|');
for (const workload of workloads) {
  const limit = best(`${workload} time raw full`, 'cpuMin');
  for (const [label] of programs) {
    const cpu = best(`${workload} time ${label}`, 'cpuMin');
    const kb = best(`${workload} alloc ${label}`, 'allocKBPerUnit');
    console.log(`| ${workload} | ${label} | ${cpu.toFixed(3)} | ${(cpu / limit).toFixed(2)} | ${kb.toFixed(1)} |`);
  }
}
