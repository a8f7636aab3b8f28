import type { Config } from '../core/config.ts';
import type { Log } from '../core/ports.ts';
import type { Secrets } from '../core/safety/redact.ts';
import type { Connection } from './client.ts';

/** A server that listens. */
export interface RunningServer {
  /** The address for this machine, with the port that was really taken. */
  url: string;
  tokenFile: string;
  /** The owner's token; null where the server asks for none. */
  token: string | null;
  /** Stops listening, ends or parks what runs, closes the store. */
  close(): Promise<void>;
}

/** What the composition root gives the commands, so that none of them knows the server's code. */
export interface Product {
  version: string;
  /** Values that logs never show; keys and tokens are added as they become known. */
  secrets: Secrets;
  /** Opens the data directory in this process. */
  openLocal(config: Config, log: Log): Promise<Connection>;
  listen(config: Config, log: Log): Promise<RunningServer>;
}
