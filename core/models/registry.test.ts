import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { manualTimers } from '../../tests/support/manual-timers.ts';
import { type ProviderStub, type StubProtocol, startProviderStub } from '../../tests/support/provider-stub.ts';
import type { ModelPart } from '../ports.ts';
import { createSecrets, type Secrets } from '../safety/redact.ts';
import { type ModelRegistry, openModels } from './registry.ts';

let dataDir: string;
let secrets: Secrets;
const stubs: ProviderStub[] = [];
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'parley-models-'));
  secrets = createSecrets();
});
afterEach(async () => {
  await Promise.all(stubs.splice(0).map((stub) => stub.close()));
  await rm(dataDir, { recursive: true, force: true });
});

function registry(env: Record<string, string> = {}): Promise<ModelRegistry> {
  const demoDir = join(dataDir, 'demo');
  return openModels({ env: new Map(Object.entries(env)), dataDir, demoDir, clock: manualTimers(), secrets });
}

async function stub(protocol: StubProtocol, text = 'ready'): Promise<ProviderStub> {
  const made = await startProviderStub(protocol, () => ({ text }));
  stubs.push(made);
  return made;
}

const status = async (models: ModelRegistry, id: string) =>
  (await models.listProviders()).find((provider) => provider.id === id);
const signal = (): AbortSignal => new AbortController().signal;
const file = (): string => join(dataDir, 'providers.json');

test('a missing key says which variable to set, or where to enter it', async () => {
  const models = await registry();
  await expect(models.resolve('anthropic')).rejects.toMatchObject({
    code: 'missing_api_key',
    message: expect.stringMatching(/set ANTHROPIC_API_KEY .* model settings/),
  });
  await expect(models.resolve('openai')).rejects.toThrow(/OPENAI_API_KEY/);
  await expect(models.resolve('openai-compatible')).rejects.toThrow(/OPENAI_BASE_URL/);
  await expect(models.resolve('gemini')).rejects.toMatchObject({
    code: 'provider_unknown',
    message: expect.stringContaining('anthropic, openai'),
  });
});

test.each([
  [{}, 'anthropic'],
  [{ OPENAI_API_KEY: 'sk-openai-1' }, 'openai'],
  [{ OLLAMA_BASE_URL: 'http://127.0.0.1:1' }, 'ollama'],
  [{ OLLAMA_BASE_URL: 'http://127.0.0.1:1', ANTHROPIC_API_KEY: 'sk-ant-1' }, 'anthropic'],
])('with %j the default provider is %s', async (env, provider) => {
  const chosen = (await registry(env)).defaults();
  expect(chosen.provider).toBe(provider);
  expect(chosen.model).not.toBe('');
});

test('a key from the page is stored for the owner alone, beats the environment and is never shown', async () => {
  const models = await registry({ ANTHROPIC_API_KEY: 'sk-from-environment' });
  expect(await status(models, 'anthropic')).toMatchObject({ keyFrom: 'environment', configured: true });
  const shown = await models.setProvider('anthropic', { apiKey: 'sk-from-the-page' });
  expect(shown).toMatchObject({ keyFrom: 'stored', configured: true });
  expect(JSON.stringify(await models.listProviders())).not.toMatch(/sk-from/);
  expect((await stat(file())).mode & 0o777).toBe(0o600);
  expect(secrets.redact('sk-from-the-page sk-from-environment')).toBe('[redacted] [redacted]');
  expect(await status(await registry(), 'anthropic')).toMatchObject({ keyFrom: 'stored' });
  expect(await models.setProvider('anthropic', { apiKey: null })).toMatchObject({ keyFrom: 'environment' });
  expect(await readdir(dataDir)).toEqual(['providers.json']);
});

test('many changes at once are all kept', async () => {
  const models = await registry();
  const ids = ['anthropic', 'openai', 'openai-compatible', 'ollama'];
  await Promise.all(
    ids.map((id) => models.setProvider(id, { apiKey: `sk-key-of-${id}`, baseUrl: 'http://127.0.0.1:9/v1' })),
  );
  const stored = JSON.parse(await readFile(file(), 'utf8')) as { providers: object };
  expect(Object.keys(stored.providers).sort()).toEqual([...ids].sort());
});

test('two changes of one provider at once are both kept', async () => {
  const models = await registry();
  const baseUrl = 'http://127.0.0.1:9/v1';
  await Promise.all([
    models.setProvider('openai', { baseUrl }),
    models.setProvider('openai', { apiKey: 'sk-at-the-same-time' }),
  ]);
  expect(await status(models, 'openai')).toMatchObject({ baseUrl, keyFrom: 'stored' });
});

test('a changed address counts from the next call on', async () => {
  const [first, second] = [await stub('openai', 'first'), await stub('openai', 'second')];
  const models = await registry({ OPENAI_BASE_URL: first.url });
  expect(await models.testProvider('openai-compatible', 'm', signal())).toMatchObject({
    message: expect.stringContaining('first'),
  });
  await models.setProvider('openai-compatible', { baseUrl: second.url });
  expect(await models.testProvider('openai-compatible', 'm', signal())).toMatchObject({
    message: expect.stringContaining('second'),
  });
});

test('a stored key does not follow to another host, and a key of the environment neither', async () => {
  const good = await stub('openai');
  const evil = await stub('openai');
  const models = await registry({ OPENAI_API_KEY: 'sk-environment-1', OPENAI_BASE_URL: good.url });
  await models.testProvider('openai', 'm', signal());
  expect(good.requests[0]?.headers.authorization).toBe('Bearer sk-environment-1');
  await models.setProvider('openai', { baseUrl: evil.url });
  await models.testProvider('openai', 'm', signal());
  expect(evil.requests[0]?.headers.authorization).toBeUndefined();
  await models.setProvider('openai', { baseUrl: good.url, apiKey: 'sk-stored-22' });
  await models.setProvider('openai', { baseUrl: evil.url });
  await models.testProvider('openai', 'm', signal());
  expect(evil.requests[1]?.headers.authorization).toBeUndefined();
});

test.each([
  ['{"version":1,', /not valid JSON/],
  ['{"version":2,"providers":{}}', /wrong field: version/],
  ['{"version":1,"providers":{"openai":{"apiKey":"sk-secret-99","extra":1}}}', /wrong field: providers\.openai/],
])('a damaged providers.json (%j) is named, left untouched and does not stop the start', async (content, why) => {
  await writeFile(file(), content);
  const models = await registry({ OPENAI_API_KEY: 'sk-environment-1' });
  const openai = await status(models, 'openai');
  expect(openai).toMatchObject({
    configured: true,
    hint: expect.stringMatching(/providers\.json in the data directory/),
  });
  expect(openai?.hint).toMatch(why);
  expect(openai?.hint).not.toContain('sk-secret');
  await expect(models.setProvider('openai', { apiKey: 'sk-new-key' })).rejects.toMatchObject({ code: 'invalid' });
  await expect(models.resolve('anthropic')).rejects.toThrow(/providers\.json/);
  expect(await readFile(file(), 'utf8')).toBe(content);
});

test.each(['ftp://x.test', 'javascript:alert(1)', 'no address'])('the address %j is refused', async (baseUrl) => {
  await expect((await registry()).setProvider('openai', { baseUrl })).rejects.toMatchObject({ code: 'invalid' });
});

test.each(['two words', 'ключ-ключ', 'line\nbreak'])('the key %j is refused, not sent', async (apiKey) => {
  await expect((await registry()).setProvider('openai', { apiKey })).rejects.toMatchObject({ code: 'invalid' });
});

test('a bad address in the environment is named', async () => {
  const models = await registry({ OPENAI_BASE_URL: 'localhost:1234' });
  expect(await status(models, 'openai-compatible')).toMatchObject({
    configured: false,
    hint: expect.stringMatching(/OPENAI_BASE_URL/),
  });
});

test('a provider is tried with one small real call', async () => {
  const server = await stub('anthropic');
  const models = await registry({ ANTHROPIC_API_KEY: 'sk-ant-12345', ANTHROPIC_BASE_URL: `${server.url}/` });
  const answer = await models.testProvider('anthropic', undefined, signal());
  expect(answer).toMatchObject({ ok: true, message: 'Anthropic answered: ready', model: models.defaults().model });
  expect(server.requests).toHaveLength(1);
  await server.close();
  expect(await models.testProvider('anthropic', undefined, signal())).toMatchObject({
    ok: false,
    error: 'provider_unreachable',
    message: expect.stringContaining(server.url),
  });
});

test('a test without a key or a model is an answer, not a throw', async () => {
  const models = await registry();
  expect(await models.testProvider('openai', undefined, signal())).toMatchObject({
    ok: false,
    error: 'missing_api_key',
  });
  await models.setProvider('openai-compatible', { baseUrl: 'http://127.0.0.1:9/v1' });
  expect(await models.testProvider('openai-compatible', undefined, signal())).toMatchObject({
    ok: false,
    error: 'invalid',
  });
});

test('Ollama needs no key and gets none; its address is with or without /v1', async () => {
  const server = await stub('openai');
  for (const url of [server.url, server.url.replace(/\/v1$/, '')]) {
    const models = await registry({ OLLAMA_BASE_URL: url, OPENAI_API_KEY: 'sk-of-somebody-else' });
    expect(await models.testProvider('ollama', 'llama3.2', signal())).toMatchObject({ ok: true });
  }
  expect(server.requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([
    ['/v1/chat/completions', undefined],
    ['/v1/chat/completions', undefined],
  ]);
});

test('the scripted model is always there and lists its scripts', async () => {
  await mkdir(join(dataDir, 'demo'));
  await mkdir(join(dataDir, 'scripts'));
  await writeFile(join(dataDir, 'demo', 'echo.yaml'), '- say: "echo {{message}}"\n');
  await writeFile(join(dataDir, 'scripts', 'mine.yaml'), '- say: mine\n');
  const models = await registry();
  expect(await status(models, 'script')).toMatchObject({ configured: true, models: ['demo:echo', 'mine'] });
  const parts: ModelPart[] = [];
  const model = await models.resolve('script');
  const scene = { agent: { id: 'a', name: 'A' }, from: 'Ann', text: 'hi', turn: 1, agents: [] };
  const request = { model: 'demo:echo', system: '', messages: [], tools: [], maxTokens: 10, scene };
  for await (const part of model.stream(request, signal())) parts.push(part);
  expect(parts[0]).toEqual({ type: 'text', text: 'echo hi' });
  await expect(models.setProvider('script', { apiKey: 'sk-12345678' })).rejects.toMatchObject({ code: 'invalid' });
});

test('a file that could be read by others is closed again at the next change', async () => {
  await writeFile(file(), '{"version":1,"providers":{}}');
  await chmod(file(), 0o644);
  await (await registry()).setProvider('openai', { apiKey: 'sk-12345678' });
  expect((await stat(file())).mode & 0o777).toBe(0o600);
});
