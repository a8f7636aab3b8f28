import type { Clock } from '../ports.ts';
import type { Secrets } from '../safety/redact.ts';

/** A provider that a call can go to. */
export interface ProviderTarget {
  /** Id of the provider. */
  provider: string;
  /** Its name in messages to people. */
  name: string;
  /** As a person wrote it, without a slash at the end. */
  baseUrl: string;
  apiKey: string | null;
  /** The variable that would set the key, for messages. */
  keyVariable: string | null;
  secrets: Secrets;
  clock: Pick<Clock, 'after' | 'now'>;
  idleTimeoutMs: number;
  firstByteTimeoutMs: number;
}
