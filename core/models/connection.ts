/** Key and address of a provider, out of what is stored and what the environment says. Pure. */
import type { ProviderEntry } from './provider-settings.ts';
import type { ProviderSpec } from './providers.ts';

export interface Connection {
  apiKey: string | null;
  keyFrom: 'environment' | 'stored' | 'none';
  /** As a person wrote it, without a slash at the end. */
  baseUrl: string | null;
  origin: string | null;
  configured: boolean;
  /** What keeps a call from being made; null where nothing does. */
  problem: string | null;
  /** What to do to connect it, or how it is connected. */
  hint: string;
}

const PAGE = "the page's model settings";

/**
 * What is stored beats the environment, each of key and address for itself. A key of the environment is used only
 * for the host that the environment names (or the provider's own), never for another one that was stored.
 */
export function connect(spec: ProviderSpec, env: ReadonlyMap<string, string>, stored: ProviderEntry): Connection {
  const variable = (name: string | null): string | undefined =>
    name === null ? undefined : env.get(name)?.trim() || undefined;
  const environmentUrl = variable(spec.urlVariable) ?? spec.defaultUrl ?? undefined;
  const rawUrl = stored.baseUrl ?? environmentUrl;
  const origin = originOf(rawUrl);
  const environmentKey =
    origin !== null && origin === originOf(environmentUrl) ? variable(spec.keyVariable) : undefined;
  const apiKey = stored.apiKey ?? environmentKey ?? null;
  const keyFrom = stored.apiKey !== undefined ? 'stored' : environmentKey !== undefined ? 'environment' : 'none';
  const isDefaultHost = origin === originOf(spec.defaultUrl ?? undefined);
  const problem =
    apiKey !== null && !isSendable(apiKey)
      ? `The key in ${spec.keyVariable} has characters that no key has; set it again`
      : problemOf(spec, rawUrl, origin, apiKey !== null || !(spec.needsKey && isDefaultHost));
  const chosen = stored.baseUrl !== undefined || variable(spec.urlVariable) !== undefined;
  const configured = spec.protocol === 'script' || (problem === null && (apiKey !== null || chosen));
  return {
    apiKey,
    keyFrom,
    baseUrl: rawUrl?.replace(/\/+$/, '') ?? null,
    origin,
    configured,
    problem: spec.protocol === 'script' ? null : problem,
    hint: hintOf(spec, configured, problem),
  };
}

/** Whether a header can carry the key. */
export function isSendable(key: string): boolean {
  return /^[\x21-\x7e]+$/.test(key);
}

function originOf(url: string | undefined): string | null {
  if (url === undefined || !URL.canParse(url)) return null;
  const { origin, protocol } = new URL(url);
  return protocol === 'http:' || protocol === 'https:' ? origin : null;
}

function problemOf(spec: ProviderSpec, url: string | undefined, origin: string | null, keyed: boolean): string | null {
  if (url === undefined) {
    return `${spec.name} has no address: set ${spec.urlVariable} (with /v1) and start again, or enter it in ${PAGE}`;
  }
  if (origin === null) {
    return `The address of ${spec.name} is not an http or https URL: correct ${spec.urlVariable} or enter it in ${PAGE}`;
  }
  if (keyed) return null;
  return `${spec.name} has no API key: set ${spec.keyVariable} and start again, or enter the key in ${PAGE}`;
}

function hintOf(spec: ProviderSpec, configured: boolean, problem: string | null): string {
  if (spec.protocol === 'script') {
    return 'Answers from rules, without any model: demo:NAME, or a YAML file in scripts/ of the data directory';
  }
  if (problem !== null) return problem;
  if (configured) return 'Connected; press Test to try it';
  return `Start ${spec.name}; it is looked for at ${spec.defaultUrl} unless ${spec.urlVariable} or ${PAGE} say otherwise`;
}
