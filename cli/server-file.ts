import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const FILE = 'server.json';
/** What a running server leaves in its data directory, so that the other commands find it. */
const ServerRecord = z.object({ pid: z.int().positive(), url: z.url({ protocol: /^http$/ }), startedAt: z.string() });
export type ServerRecord = z.infer<typeof ServerRecord>;

export async function writeServerFile(dataDir: string, record: ServerRecord): Promise<void> {
  const path = join(dataDir, FILE);
  const temporary = `${path}.${record.pid}`;
  await writeFile(temporary, JSON.stringify(record), { mode: 0o600 });
  await rename(temporary, path);
}

/** Removes the file where it is still this process's own. */
export async function removeServerFile(dataDir: string, pid: number): Promise<void> {
  const record = await readServerFile(dataDir);
  if (record?.pid === pid) await rm(join(dataDir, FILE), { force: true });
}

/** Null where there is none, or one that says nothing. Whether the server lives is another question. */
export async function readServerFile(dataDir: string): Promise<ServerRecord | null> {
  try {
    const parsed = ServerRecord.safeParse(JSON.parse(await readFile(join(dataDir, FILE), 'utf8')));
    return parsed.success ? parsed.data : null;
  } catch {
    return null; // no server has been here, or it is being written
  }
}

/** Whether a process with this id exists; it may be another program after a restart of the machine. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
