import { loadConfig, readSurroundings } from '../core/config.ts';
import { ExitCode, type Io, line, styleFor } from './io.ts';
import { createLog } from './log.ts';
import { openBrowser } from './open-browser.ts';
import type { Product } from './product.ts';
import { removeServerFile, writeServerFile } from './server-file.ts';
import { onInterrupt } from './signals.ts';

export interface ServeFlags {
  port?: string;
  host?: string;
  data?: string;
  open?: boolean;
  auth: boolean;
  verbose?: boolean;
}

/** How long a stop may take before the process ends all the same. */
const STOP_MS = 4_500;

/** Runs the server until a signal; a second signal ends the process at once. */
export async function serve(product: Product, io: Io, flags: ServeFlags): Promise<ExitCode> {
  const config = loadConfig(flags);
  const log = createLog(io, flags.verbose ? 'debug' : 'info', product.secrets);
  let stop = () => {};
  let stopping = false;
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const release = onInterrupt((count, signal) => {
    if (count > 1) process.exit(ExitCode.interrupted);
    stopping = true;
    log.info({ signal }, 'stopping');
    setTimeout(() => {
      log.warn({ afterMs: STOP_MS }, 'not everything ended in time');
      process.exit(ExitCode.done);
    }, STOP_MS).unref();
    stop();
  });
  let code: ExitCode = ExitCode.done;
  // A bug ends what it was part of, not the server; after one that nobody could catch only a new start is safe.
  const onRejection = (error: unknown) => log.error({ err: error }, 'a rejection was not handled');
  const onException = (error: unknown) => {
    log.error({ err: error }, 'stopping after an error that was not caught');
    code = ExitCode.failed;
    stop();
  };
  process.on('unhandledRejection', onRejection).on('uncaughtException', onException);
  try {
    const server = await product.listen(config, log);
    try {
      if (stopping) return ExitCode.done;
      await writeServerFile(config.dataDir, { pid: process.pid, url: server.url, startedAt: new Date().toISOString() });
      announce(product, io, server, config.dataDir);
      if (flags.open && io.stdout.isTTY && readSurroundings().desktop) openBrowser(addressOf(server));
      await stopped;
    } finally {
      await removeServerFile(config.dataDir, process.pid);
      await server.close();
    }
    return code;
  } finally {
    process.off('unhandledRejection', onRejection).off('uncaughtException', onException);
    release();
  }
}

/** The fragment stays in the browser: it is never sent or logged. */
function addressOf(server: { url: string; token: string | null }): string {
  return server.token === null ? server.url : `${server.url}/#token=${encodeURIComponent(server.token)}`;
}

function announce(
  product: Product,
  io: Io,
  server: { url: string; tokenFile: string; token: string | null },
  dataDir: string,
): void {
  if (!io.stdout.isTTY) {
    line(io.stdout, JSON.stringify({ url: server.url, tokenFile: server.tokenFile, version: product.version }));
    return;
  }
  const style = styleFor(io.stdout);
  line(io.stdout, style.bold(addressOf(server)));
  line(io.stderr, styleFor(io.stderr).dim(`Parley ${product.version}, data in ${dataDir}; Ctrl-C stops it`));
}
