import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from './protocol/errors.ts';
import { OwnerSettings } from './protocol/settings.ts';
import { parseForeignYaml } from './safety/yaml.ts';

const FILE = 'config.yaml';
const MAX_BYTES = 256 * 1024;

/**
 * Reads `config.yaml` of the data directory; without the file all is as it ships. Throws AppError `invalid` that names
 * the file and the line or key, so that the server does not start on half of what was meant.
 */
export function readOwnerSettings(dataDir: string): OwnerSettings {
  const path = join(dataDir, FILE);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    if (code === 'ENOENT') return OwnerSettings.parse({});
    throw new AppError('invalid', `${path} cannot be read (${code})`, undefined, { cause: error });
  }
  const parsed = parseForeignYaml(text, MAX_BYTES);
  if (!parsed.ok) throw new AppError('invalid', `${path}: ${parsed.problem}`);
  const settings = OwnerSettings.safeParse(parsed.value ?? {});
  if (settings.success) return settings.data;
  const issue = settings.error.issues[0];
  const key = issue?.path.join(' → ') ?? '';
  throw new AppError('invalid', `${path}: ${key === '' ? '' : `${key}: `}${issue?.message ?? 'is not valid'}`);
}
