import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

let found: string | undefined;

/**
 * The folder of the package: where `package.json`, `drizzle/`, `agents/` and `dist/` lie. The same from source
 * and from the bundle, wherever its chunks are.
 */
export function packageRoot(): string {
  if (found !== undefined) return found;
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error('the package is incomplete: there is no package.json above the program');
    folder = parent;
  }
  found = folder;
  return folder;
}
