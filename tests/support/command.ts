import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { packageRoot } from '../../core/paths.ts';

const BUILT = join(packageRoot(), 'dist', 'node', 'cli', 'main.js');

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  out: string;
  err: string;
}

export interface Started {
  child: ChildProcessWithoutNullStreams;
  ended: Promise<Ended>;
  /** Resolves when standard output matches; rejects when the process ends before. */
  untilOut(pattern: RegExp): Promise<string>;
  untilErr(pattern: RegExp): Promise<string>;
}

/** A folder of its own for one test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts the built command on a data directory, without anything of this machine's own settings. */
export function start(data: string, args: readonly string[], env: Record<string, string> = {}): Started {
  const inherited = { PATH: process.env['PATH'] ?? '', HOME: data };
  const child = spawn(process.execPath, [BUILT, ...args], { env: { ...inherited, PARLEY_DATA: data, ...env } });
  let out = '';
  let err = '';
  const watchers = new Set<() => void>();
  const notify = () => {
    for (const watcher of watchers) watcher();
  };
  child.stdout.on('data', (chunk) => {
    out += String(chunk);
    notify();
  });
  child.stderr.on('data', (chunk) => {
    err += String(chunk);
    notify();
  });
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code, signal) => {
      resolve({ code, signal, out, err });
      notify();
    });
  });
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await ended;
  });
  const until = (read: () => string, pattern: RegExp) =>
    new Promise<string>((resolve, reject) => {
      const look = () => {
        if (pattern.test(read())) resolve(read());
        else if (child.exitCode === null && child.signalCode === null) return;
        else reject(new Error(`ended with ${child.exitCode} before ${pattern}: ${out}${err}`));
        watchers.delete(look);
      };
      watchers.add(look);
      look();
    });
  return { child, ended, untilOut: (p) => until(() => out, p), untilErr: (p) => until(() => err, p) };
}

/** Runs the built command to its end. */
export function command(data: string, args: readonly string[], input = ''): Promise<Ended> {
  const { child, ended } = start(data, args);
  child.stdin.on('error', () => {}); // it may end without reading
  child.stdin.end(input);
  return ended;
}

export interface ServerLine {
  url: string;
  tokenFile: string;
  version: string;
}

/** A server on a free port; resolves with the first line of its standard output. */
export async function startServer(data: string): Promise<Started & { line: ServerLine }> {
  const started = start(data, ['serve', '--port', '0']);
  const out = await started.untilOut(/\n/);
  return { ...started, line: JSON.parse(out) as ServerLine };
}

/** A script for agents with `provider: script` and this name as model; a list of rules as in the scripted model. */
export function writeScript(data: string, name: string, rules: readonly Record<string, unknown>[]): void {
  mkdirSync(join(data, 'scripts'), { recursive: true, mode: 0o700 });
  writeFileSync(join(data, 'scripts', `${name}.yaml`), JSON.stringify(rules));
}
