import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../core/config.ts';
import { type OpenParley, openParley, type ParleyOptions } from '../../core/index.ts';
import type { Log } from '../../core/ports.ts';
import { type ListenOptions, type RunningServer, startServer } from '../listen.ts';
import { silentLog } from './memory-log.ts';

export interface Answer {
  status: number;
  headers: Headers;
  body: Record<string, unknown>;
}

export interface RealServer {
  parley: OpenParley;
  running: RunningServer;
  url: string;
  dataDir: string;
  /** One call with the owner's token, or with the one given; JSON in and out. */
  call(
    method: string,
    path: string,
    body?: unknown,
    options?: { token?: string | null; key?: string },
  ): Promise<Answer>;
  close(): Promise<void>;
}

/** A server on a free port over a real core in a temporary directory. */
export async function realServer(
  options: Partial<Omit<ListenOptions, 'parley'>> & { demo?: boolean; log?: Log; core?: Partial<ParleyOptions> } = {},
): Promise<RealServer> {
  const dataDir = mkdtempSync(join(tmpdir(), 'parley-server-'));
  const config = loadConfig({ data: dataDir, port: '0' }, {});
  const parley = await openParley({
    config,
    log: options.log ?? silentLog,
    version: '0.0.0',
    demo: options.demo ?? false,
    ...options.core,
  });
  const running = await startServer({
    ...{ parley, host: '127.0.0.1', port: 0, auth: true, allowedHosts: [], webDir: null },
    tokenFile: parley.tokenFile,
    ...options,
  });
  return {
    parley,
    running,
    url: running.url,
    dataDir,
    async call(method, path, body, { token = parley.ownerToken, key } = {}) {
      const headers: Record<string, string> = {};
      if (token !== null) headers['authorization'] = `Bearer ${token}`;
      if (body !== undefined) headers['content-type'] = 'application/json';
      if (key !== undefined) headers['idempotency-key'] = key;
      const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
      const response = await fetch(`${running.url}${path}`, init);
      const text = await response.text();
      return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) };
    },
    async close() {
      await running.close();
      await parley.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
