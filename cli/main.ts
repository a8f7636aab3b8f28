#!/usr/bin/env node
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../core/paths.ts';
import { createSecrets } from '../core/safety/redact.ts';
import type { Product } from './product.ts';
import { runCommandLine } from './program.ts';

const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string };

const secrets = createSecrets();

const product: Product = {
  version,
  secrets,
  async openLocal(config, log) {
    const [{ openParley }, { createApp }, { localFetch }, { openLive }] = await Promise.all([
      import('../core/index.ts'),
      import('../server/app.ts'),
      import('../server/local-fetch.ts'),
      import('../server/live.ts'),
    ]);
    const parley = await openParley({ config, log, version, secrets });
    const live = openLive(parley);
    const { allowedHosts } = config;
    const { tokenFile } = parley;
    const app = createApp(parley, { auth: true, allowedHosts, port: () => 0, tokenFile, webDir: null, live });
    return {
      url: config.dataDir,
      isLocal: true,
      request: localFetch(app, parley.ownerToken),
      async close() {
        live.close();
        await parley.close();
      },
    };
  },
  async listen(config, log) {
    const [{ openParley }, { startServer }] = await Promise.all([
      import('../core/index.ts'),
      import('../server/listen.ts'),
    ]);
    const parley = await openParley({ config, log, version, secrets });
    try {
      const { host, port, auth, allowedHosts } = config;
      const { tokenFile } = parley;
      const webDir = pageFolder();
      const server = await startServer({ parley, host, port, auth, allowedHosts, tokenFile, webDir });
      return {
        url: localUrl(server.url),
        tokenFile,
        token: auth ? parley.ownerToken : null,
        async close() {
          await server.close();
          await parley.close();
        },
      };
    } catch (error) {
      await parley.close();
      throw error;
    }
  },
};

function pageFolder(): string | null {
  const folder = join(packageRoot(), 'dist', 'web');
  return existsSync(join(folder, 'index.html')) ? folder : null;
}

/** A server on every address of the machine is reached from here by its loopback name. */
function localUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

// A reader that goes away (`parley … | head`) is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

process.exitCode = await runCommandLine(product, process, process.argv.slice(2));
