import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';

/** Writes each text file also as .gz and .br, so that the server compresses nothing itself. */
function precompress(): Plugin {
  return {
    name: 'precompress',
    apply: 'build',
    writeBundle({ dir }) {
      if (dir === undefined) return;
      for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(?:js|css|html|svg)$/.test(name)) continue;
        const path = join(dir, name);
        const bytes = readFileSync(path);
        if (bytes.length < 1024) continue;
        writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
        writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 10 } }));
      }
    },
  };
}

const server = 'http://127.0.0.1:3000';

export default defineConfig({
  root: 'web',
  plugins: [svelte(), precompress()],
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    target: 'es2022',
    // The policy of the page allows no data: fonts, and a file of its own is kept for good.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Only names and types of the protocol are used here: its schemas, and zod with them, are left out.
    rolldownOptions: { treeshake: { moduleSideEffects: [{ test: /\/core\/protocol\//, sideEffects: false }] } },
  },
  server: { proxy: { '/api': server, '/health': server, '/ws': { target: server, ws: true } } },
});
