import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../core/config.ts';
import { packageRoot } from '../core/paths.ts';
import type { Finding } from './doctor.ts';

const MAGIC = 'SQLite format 3\0';
/** Offsets in the header of a SQLite file: https://www.sqlite.org/fileformat.html#the_database_header */
const HEADER = { bytes: 100, pageSize: 16, pageCount: 28, userVersion: 60, applicationId: 68 } as const;
/** 'PARL' */
const APPLICATION_ID = 0x5041524c;

/** Reads the header only: opening the file, even for reading, could write beside it. */
export async function checkDatabase({ config }: { config: Config }): Promise<Finding[]> {
  const name = 'database';
  const path = config.databasePath;
  const header = await readHeader(path);
  if (header === null) return [{ name, state: 'ok', message: `${path} will be made by the first start` }];
  const { bytes, size } = header;
  const restore = 'restore a backup from the folder "backups" beside it';
  if (bytes.length < HEADER.bytes || bytes.toString('latin1', 0, MAGIC.length) !== MAGIC) {
    return [{ name, state: 'fail', message: `${path} is damaged or no SQLite database`, todo: restore }];
  }
  if (bytes.readUInt32BE(HEADER.applicationId) !== APPLICATION_ID) {
    const todo = 'name another data directory with --data';
    return [{ name, state: 'fail', message: `${path} belongs to another program`, todo }];
  }
  const raw = bytes.readUInt16BE(HEADER.pageSize);
  const pageSize = raw === 1 ? 65_536 : raw;
  if (size < bytes.readUInt32BE(HEADER.pageCount) * pageSize) {
    return [{ name, state: 'fail', message: `${path} is shorter than its header says`, todo: restore }];
  }
  const version = bytes.readUInt32BE(HEADER.userVersion);
  const known = await knownVersion();
  if (version > known) {
    const todo = 'install the newer version of Parley that wrote it';
    return [{ name, state: 'fail', message: `${path} has version ${version}, this program knows ${known}`, todo }];
  }
  const state = version === known ? `version ${version}` : `version ${version}; the next start brings it to ${known}`;
  return [{ name, state: 'ok', message: `${path}, ${state}` }];
}

async function readHeader(path: string): Promise<{ bytes: Buffer; size: number } | null> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(path, 'r');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
  try {
    const { size } = await file.stat();
    if (size === 0) return null;
    const bytes = Buffer.alloc(HEADER.bytes);
    const { bytesRead } = await file.read(bytes, 0, HEADER.bytes, 0);
    return { bytes: bytes.subarray(0, bytesRead), size };
  } finally {
    await file.close();
  }
}

async function knownVersion(): Promise<number> {
  const text = await readFile(join(packageRoot(), 'drizzle', 'sqlite', 'meta', '_journal.json'), 'utf8');
  return (JSON.parse(text) as { entries: unknown[] }).entries.length;
}
