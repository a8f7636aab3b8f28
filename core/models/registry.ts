/** Which model providers there are, what each is set to, and the models behind them. */
import { join } from 'node:path';
import type { Clock, Log, Model, Models } from '../ports.ts';
import type { ProviderStatus } from '../protocol/entities.ts';
import { AppError } from '../protocol/errors.ts';
import type { ProviderTest } from '../protocol/requests.ts';
import { createSecrets, type Secrets } from '../safety/redact.ts';
import { type Connection, connect, isSendable } from './connection.ts';
import { openProviderSettings, type ProviderEntry } from './provider-settings.ts';
import { tryModel } from './provider-test.ts';
import { PROVIDERS, type ProviderSpec } from './providers.ts';
import { createScriptModel, scriptNames } from './script.ts';

export interface ModelOptions {
  /** Variables of the providers, by name. */
  env: ReadonlyMap<string, string>;
  dataDir: string;
  /** Where the scripts of `demo:NAME` lie. */
  demoDir: string;
  clock: Clock;
  log?: Log;
  /** Every key that becomes known is added, so that logs and errors can mask it. */
  secrets?: Secrets;
  /** Ends a provider that sends no byte for so long; default 60 s. */
  idleTimeoutMs?: number;
  /** Ends a provider that has not begun to answer; default 120 s. */
  firstByteTimeoutMs?: number;
}

/** `null` forgets the stored value, absence keeps it. */
export interface ProviderInput {
  apiKey?: string | null | undefined;
  baseUrl?: string | null | undefined;
}

export interface ModelRegistry extends Models {
  /** Never holds a key. */
  listProviders(): Promise<ProviderStatus[]>;
  /**
   * Stores key and address of a provider; they beat the environment. A stored key belongs to the address that it
   * was stored with: another host without a new key forgets it. Throws AppError `provider_unknown`, `invalid`,
   * `storage_full`.
   */
  setProvider(provider: string, input: ProviderInput): Promise<ProviderStatus>;
  /** Makes one tiny real call. A failed call is an answer, not a throw; throws `provider_unknown` and the signal's reason. */
  testProvider(provider: string, model: string | undefined, signal: AbortSignal): Promise<ProviderTest>;
}

/** Opens the registry on a data directory. An unreadable `providers.json` does not stop it: the providers' hints tell. */
export async function openModels(options: ModelOptions): Promise<ModelRegistry> {
  const secrets = options.secrets ?? createSecrets();
  const settings = await openProviderSettings(options.dataDir);
  const scriptsDir = join(options.dataDir, 'scripts');
  const script = createScriptModel({ scriptsDir, demoDir: options.demoDir, clock: options.clock });
  const models = new Map<string, Model>();
  for (const spec of PROVIDERS) {
    const key = connectionOf(spec).apiKey;
    if (key !== null) secrets.add(key);
  }
  if (settings.fault) options.log?.warn({ fault: settings.fault.message }, 'stored provider settings are ignored');

  function specOf(provider: string): ProviderSpec {
    const spec = PROVIDERS.find((candidate) => candidate.id === provider);
    if (spec) return spec;
    const known = PROVIDERS.map((candidate) => candidate.id).join(', ');
    throw new AppError(
      'provider_unknown',
      `There is no model provider ${JSON.stringify(provider)}; choose one of ${known}`,
    );
  }

  function connectionOf(spec: ProviderSpec): Connection {
    return connect(spec, options.env, settings.get(spec.id));
  }

  async function statusOf(spec: ProviderSpec): Promise<ProviderStatus> {
    const { keyFrom, baseUrl, configured, hint } = connectionOf(spec);
    return {
      id: spec.id,
      name: spec.name,
      configured,
      keyFrom,
      keyVariable: spec.keyVariable,
      baseUrl,
      models: spec.protocol === 'script' ? await listScripts() : [...spec.models],
      hint: settings.fault && spec.protocol !== 'script' ? `${settings.fault.message}. ${hint}` : hint,
    };
  }

  async function listScripts(): Promise<string[]> {
    const demos = await scriptNames(options.demoDir);
    const own = await scriptNames(scriptsDir);
    return [...demos.map((name) => `demo:${name}`), ...own].slice(0, 100);
  }

  async function resolve(provider: string): Promise<Model> {
    const spec = specOf(provider);
    if (spec.protocol === 'script') return script;
    // Loaded first: nothing may come between reading the settings and keeping the model made from them.
    const create =
      spec.protocol === 'anthropic'
        ? (await import('./anthropic.ts')).createAnthropicModel
        : (await import('./openai-compatible.ts')).createOpenAiModel;
    const known = models.get(provider);
    if (known) return known;
    const { apiKey, baseUrl, problem } = connectionOf(spec);
    if (problem !== null || baseUrl === null) {
      const fault = settings.fault ? ` (${settings.fault.message})` : '';
      throw new AppError('missing_api_key', `${problem ?? 'No address is set'}${fault}`, { provider });
    }
    const target = {
      provider: spec.id,
      name: spec.name,
      baseUrl,
      apiKey,
      keyVariable: spec.keyVariable,
      secrets,
      clock: options.clock,
      idleTimeoutMs: options.idleTimeoutMs ?? 60_000,
      firstByteTimeoutMs: options.firstByteTimeoutMs ?? 120_000,
    };
    const model = create(target);
    models.set(provider, model);
    return model;
  }

  return {
    resolve,
    defaults() {
      const order = ['anthropic', 'openai', 'ollama'].map(specOf);
      const spec = order.find((candidate) => connectionOf(candidate).configured) ?? specOf('anthropic');
      return { provider: spec.id, model: spec.models[0] ?? '' };
    },
    listProviders: () => Promise.all(PROVIDERS.map(statusOf)),
    async setProvider(provider, input) {
      const spec = specOf(provider);
      if (spec.protocol === 'script')
        throw new AppError('invalid', 'The scripted model has no key and no address to set');
      if (input.apiKey) secrets.add(input.apiKey.trim());
      await settings.update(provider, (before) => changed(spec, options.env, before, input));
      models.delete(provider);
      return statusOf(spec);
    },
    async testProvider(provider, model, signal) {
      const spec = specOf(provider);
      const name = model ?? (spec.protocol === 'script' ? (await listScripts())[0] : spec.models[0]) ?? '';
      return tryModel(() => resolve(provider), { name: spec.name, model: name }, options.clock, signal);
    },
  };
}

/** What is stored after a change: a stored key does not follow to another host. */
function changed(
  spec: ProviderSpec,
  env: ReadonlyMap<string, string>,
  before: ProviderEntry,
  input: ProviderInput,
): ProviderEntry {
  const baseUrl = input.baseUrl === undefined ? before.baseUrl : (input.baseUrl ?? undefined);
  if (baseUrl !== undefined && !(/^https?:\/\//i.test(baseUrl) && URL.canParse(baseUrl))) {
    throw new AppError('invalid', `The address of ${spec.name} must begin with http:// or https://`);
  }
  if (input.apiKey && !isSendable(input.apiKey.trim())) {
    throw new AppError('invalid', `The key of ${spec.name} has characters that no key has; copy it again`);
  }
  const moved = connect(spec, env, before).origin !== connect(spec, env, { ...(baseUrl ? { baseUrl } : {}) }).origin;
  const kept = moved ? undefined : before.apiKey;
  const apiKey = input.apiKey === undefined ? kept : input.apiKey?.trim() || undefined;
  return { ...(apiKey ? { apiKey } : {}), ...(baseUrl ? { baseUrl } : {}) };
}
