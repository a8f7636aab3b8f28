import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../core/paths.ts';

/** The gates of the speed figures that repeat exactly: bytes, statements and commits, never a stopwatch. */
const MAX_KB_PER_TURN = 200;
const MAX_COMMITS_PER_TURN = 2;
const MAX_STATEMENTS_PER_TURN = 12;
const TURNS = 200;

interface Measured {
  kbPerTurn: number;
  commitsPerTurn: number;
  statementsPerTurn: number;
}

let folder: string;
let handOver: Measured;
let broadcast: Measured;

/** Measures in a process of its own whose young generation is so large that nothing is collected in between. */
function measure(workload: 'w1' | 'w2'): Measured {
  const flags = ['--expose-gc', '--max-semi-space-size=1024', '--min-semi-space-size=1024'];
  const out = execFileSync(process.execPath, [...flags, join(folder, 'measure.mjs'), workload, String(TURNS)], {
    encoding: 'utf8',
  });
  return JSON.parse(out) as Measured;
}

beforeAll(async () => {
  folder = mkdtempSync(join(packageRoot(), '.bench-gates-'));
  await build({
    entryPoints: [join(packageRoot(), 'bench/measure.ts')],
    outfile: join(folder, 'measure.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    logLevel: 'error',
  });
  handOver = measure('w1');
  broadcast = measure('w2');
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the price of a turn', () => {
  test('a hand-over allocates little', () => {
    expect(handOver.kbPerTurn).toBeGreaterThan(1);
    expect(handOver.kbPerTurn).toBeLessThanOrEqual(MAX_KB_PER_TURN);
  });
  test('a hand-over takes few statements and commits', () => {
    expect(handOver.commitsPerTurn).toBeLessThanOrEqual(MAX_COMMITS_PER_TURN);
    expect(handOver.statementsPerTurn).toBeLessThanOrEqual(MAX_STATEMENTS_PER_TURN);
    expect(handOver.commitsPerTurn).toBeGreaterThanOrEqual(1);
  });
  test('a reply to a broadcast does too', () => {
    expect(broadcast.commitsPerTurn).toBeLessThanOrEqual(MAX_COMMITS_PER_TURN);
    expect(broadcast.statementsPerTurn).toBeLessThanOrEqual(MAX_STATEMENTS_PER_TURN);
    expect(broadcast.kbPerTurn).toBeLessThanOrEqual(MAX_KB_PER_TURN);
  });
});
