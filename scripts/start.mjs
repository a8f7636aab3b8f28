// npm start: makes everything ready, then becomes the server, so that signals and exit codes are the server's own.
import { pathToFileURL } from 'node:url';
import { orExplain, setup } from './setup.mjs';
import { builtMain } from './sources.mjs';

orExplain(() => setup({ build: true }));
process.argv = [process.argv[0] ?? 'node', builtMain, 'serve', '--open', ...process.argv.slice(2)];

// npm that is killed leaves its child running; a shell's `node scripts/start.mjs &` must survive its shell.
if (process.env['npm_lifecycle_event'] === 'start' && process.platform !== 'win32') {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    process.kill(process.pid, 'SIGTERM');
  }, 500);
  watch.unref();
}

await import(pathToFileURL(builtMain).href);
