import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../../core/paths.ts';

const BUILT = join(packageRoot(), 'dist', 'node', 'cli', 'main.js');
const BOOT_MS = 20_000;
const MAX_PROCESSES = 4;

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
  stderr: string;
}

export interface Address {
  url: string;
  token: string;
}

/** One execution of the built server on a free port. */
export interface ServerProcess {
  readonly pid: number;
  /** Rejects when the process ends, or says nothing for too long, before it listens. */
  readonly ready: Promise<Address>;
  readonly ended: Promise<Exit>;
  hasEnded(): boolean;
  signal(name: 'SIGKILL' | 'SIGTERM'): Promise<Exit>;
}

/** Starts servers and knows every one, so that none outlives its test. */
export interface Launcher {
  start(data: string): ServerProcess;
  folder(): string;
  /** Kills what still runs, by process id, and removes the folders. */
  endAll(): Promise<void>;
}

export function openLauncher(program = BUILT): Launcher {
  const running = new Set<ServerProcess>();
  const folders: string[] = [];
  return {
    folder() {
      const folder = mkdtempSync(join(tmpdir(), 'parley-chaos-'));
      folders.push(folder);
      return folder;
    },
    start(data) {
      if (running.size >= MAX_PROCESSES) throw new Error(`${running.size} servers run already`);
      const server = launch(program, data);
      running.add(server);
      server.ended.then(
        () => running.delete(server),
        () => running.delete(server),
      );
      return server;
    },
    async endAll() {
      await Promise.all([...running].map((server) => server.signal('SIGKILL')));
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    },
  };
}

function launch(program: string, data: string): ServerProcess {
  const child: ChildProcess = spawn(process.execPath, [program, 'serve', '--port', '0'], {
    env: { PATH: process.env['PATH'] ?? '', HOME: data, PARLEY_DATA: data },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} could not be started`);
  let stdout = '';
  let stderr = '';
  child.stderr?.on('data', (chunk) => {
    stderr = (stderr + String(chunk)).slice(-64_000);
  });
  const ended = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stderr }));
  });
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const ready = new Promise<Address>((resolve, reject) => {
    const late = setTimeout(
      () => reject(new Error(`the server was not ready after ${BOOT_MS} ms: ${stderr}`)),
      BOOT_MS,
    );
    child.stdout?.on('data', (chunk) => {
      stdout += String(chunk);
      const end = stdout.indexOf('\n');
      if (end === -1) return;
      clearTimeout(late);
      const line = JSON.parse(stdout.slice(0, end)) as { url: string; tokenFile: string };
      resolve({ url: line.url, token: readFileSync(line.tokenFile, 'utf8').trim() });
    });
    child.once('close', () => {
      clearTimeout(late);
      reject(new Error(`the server ended before it was ready: ${stderr}`));
    });
  });
  ready.catch(() => {}); // whoever needs it awaits it
  return {
    pid,
    ready,
    ended,
    hasEnded,
    async signal(name) {
      if (!hasEnded()) process.kill(pid, name);
      return ended;
    },
  };
}
