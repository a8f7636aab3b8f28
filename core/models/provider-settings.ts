/** What a person set for the providers on the page: `providers.json` in the data directory, 0600, never shown. */
import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { AppError } from '../protocol/errors.ts';

const FILE = 'providers.json';
const MAX_BYTES = 64 * 1024;

const Entry = z.strictObject({
  apiKey: z.string().min(1).max(1024).optional(),
  baseUrl: z
    .url({ protocol: /^https?$/ })
    .max(2048)
    .optional(),
});
const Content = z.strictObject({ version: z.literal(1), providers: z.record(z.string().min(1).max(64), Entry) });

export type ProviderEntry = z.infer<typeof Entry>;

export interface ProviderSettings {
  get(provider: string): ProviderEntry;
  /**
   * Changes one entry; changes run one after the other. The file is written whole or not at all. Throws what
   * `change` throws, and `fault` where the file could not be read.
   */
  update(provider: string, change: (before: ProviderEntry) => ProviderEntry): Promise<void>;
  /** Why the file could not be read; it is then left untouched and nothing is stored. */
  readonly fault: AppError | null;
}

/** Reads the file. One that cannot be read is a `fault`, not a throw: the server starts, and says so where it matters. */
export async function openProviderSettings(dataDir: string): Promise<ProviderSettings> {
  const path = join(dataDir, FILE);
  const read = await readEntries(path);
  const fault = read instanceof AppError ? read : null;
  let entries: ReadonlyMap<string, ProviderEntry> = read instanceof AppError ? new Map() : read;
  let writing: Promise<void> = Promise.resolve();

  async function write(provider: string, change: (before: ProviderEntry) => ProviderEntry): Promise<void> {
    const entry = change(entries.get(provider) ?? {});
    const next = new Map(entries);
    if (entry.apiKey === undefined && entry.baseUrl === undefined) next.delete(provider);
    else next.set(provider, entry);
    await writeWhole(path, `${JSON.stringify({ version: 1, providers: Object.fromEntries(next) }, null, 2)}\n`);
    entries = next;
  }

  return {
    fault,
    get: (provider) => entries.get(provider) ?? {},
    async update(provider, change) {
      if (fault) throw fault;
      const mine = writing.then(() => write(provider, change));
      // The failure is the caller's; the next change must not wait for ever.
      writing = mine.catch(() => undefined);
      await mine;
    },
  };
}

async function readEntries(path: string): Promise<ReadonlyMap<string, ProviderEntry> | AppError> {
  const broken = (why: string): AppError =>
    new AppError('invalid', `${FILE} in the data directory ${why}; repair it or delete it and enter the keys again`);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return code === 'ENOENT' ? new Map() : broken(`cannot be read (${code})`);
  }
  if (text.length > MAX_BYTES) return broken(`is larger than ${MAX_BYTES} bytes`);
  try {
    const content = Content.safeParse(JSON.parse(text));
    if (!content.success) return broken(`has a wrong field: ${content.error.issues[0]?.path.join('.') ?? ''}`);
    return new Map(Object.entries(content.data.providers));
  } catch {
    // The parser's message would quote the file, which holds keys.
    return broken('is not valid JSON');
  }
}

async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    const file = await open(temporary, 'w', 0o600);
    try {
      await file.chmod(0o600);
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'ENOSPC' || code === 'EDQUOT') {
      throw new AppError('storage_full', `${FILE} was not saved: the disk is full`, undefined, { cause: error });
    }
    throw error;
  }
}
