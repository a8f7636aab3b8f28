#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../core/paths.ts';
import type { Product } from './product.ts';
import { runCommandLine } from './program.ts';

const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string };

const product: Product = {
  version,
  openLocal: async () => {
    throw new Error('not yet');
  },
  listen: async () => {
    throw new Error('not yet');
  },
};

// A reader that goes away (`parley … | head`) is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

process.exitCode = await runCommandLine(product, process, process.argv.slice(2));
