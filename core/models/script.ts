/** The scripted model: answers from rules, needs no network, gives the same output for the same input. */
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { Clock, Model, ModelPart, ModelRequest, TokenUsage } from '../ports.ts';
import { ModelError } from '../protocol/errors.ts';
import { scriptError } from './provider-errors.ts';
import { findRule, parseScript, type ScriptRule } from './script-rules.ts';
import { chunksOf, fillArgs, fillText } from './script-text.ts';

const SCRIPT_NAME = /^[\p{L}\p{N}][\p{L}\p{M}\p{N}_-]{0,63}$/u;
const MAX_FILE_BYTES = 256 * 1024;
const MAX_CACHED = 100;

export interface ScriptOptions {
  /** Holds a person's own scripts, `NAME.yaml`. */
  scriptsDir: string;
  /** Holds the scripts that ship with the product, for `demo:NAME`. */
  demoDir: string;
  clock: Pick<Clock, 'sleep'>;
}

interface Cached {
  version: string;
  rules: readonly ScriptRule[];
}

/** Where a script lies, by the `model` of its agent. */
function locate(model: string, options: ScriptOptions): { path: string; shown: string } {
  const demo = model.startsWith('demo:');
  const name = (demo ? model.slice(5) : model).replace(/\.ya?ml$/, '');
  if (!SCRIPT_NAME.test(name)) {
    throw scriptError(
      'script_invalid',
      `${JSON.stringify(model)} is no script name: write demo:NAME for a built-in script, or the name of a file in scripts/ of the data directory`,
    );
  }
  return demo
    ? { path: join(options.demoDir, `${name}.yaml`), shown: `demo:${name}` }
    : { path: join(options.scriptsDir, `${name}.yaml`), shown: `scripts/${name}.yaml` };
}

/** Names of the scripts in a folder, without ending, sorted; none where there is no such folder. */
export async function scriptNames(dir: string): Promise<string[]> {
  try {
    const files = await readdir(dir);
    return files
      .filter((file) => file.endsWith('.yaml'))
      .map((file) => file.slice(0, -5))
      .filter((name) => SCRIPT_NAME.test(name))
      .sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** Makes the model. A changed file is read again at the next call; a bad one is ModelError `script_invalid`. */
export function createScriptModel(options: ScriptOptions): Model {
  const cache = new Map<string, Cached>();

  async function load(model: string): Promise<readonly ScriptRule[]> {
    const { path, shown } = locate(model, options);
    try {
      const stat = await lstat(path);
      if (!stat.isFile()) throw scriptError('script_invalid', `The script ${shown} is not a regular file`);
      if (stat.size > MAX_FILE_BYTES) {
        throw scriptError('script_invalid', `The script ${shown} is larger than ${MAX_FILE_BYTES} bytes`);
      }
      const version = `${stat.mtimeMs}/${stat.size}`;
      const known = cache.get(path);
      if (known?.version === version) return known.rules;
      const rules = parseScript(await readFile(path, 'utf8'), shown);
      if (cache.size >= MAX_CACHED) cache.clear();
      cache.set(path, { version, rules });
      return rules;
    } catch (error) {
      if (!isMissing(error)) throw error;
      const demos = (await scriptNames(options.demoDir)).map((name) => `demo:${name}`).join(', ');
      throw scriptError(
        'script_invalid',
        `There is no script ${shown}: make the file in the data directory, or use a built-in one (${demos})`,
      );
    }
  }

  return {
    async *stream(request, signal) {
      signal.throwIfAborted();
      const rules = await load(request.model);
      yield* answer(rules, request, options.clock, signal);
    },
  };
}

async function* answer(
  rules: readonly ScriptRule[],
  request: ModelRequest,
  clock: Pick<Clock, 'sleep'>,
  signal: AbortSignal,
): AsyncGenerator<ModelPart> {
  const { scene } = request;
  const match = findRule(rules, scene);
  if (match === null) {
    yield { type: 'finish', stop: 'end', usage: usageOf(request, '', '', '') };
    return;
  }
  const { rule, groups } = match;
  let waited = false;
  // A turn of the event loop between chunks lets sockets be written and other chats go on.
  const pause = async (): Promise<void> => {
    waited = true;
    if (rule.delayMs > 0) await clock.sleep(rule.delayMs, signal);
    else await nextTick();
    signal.throwIfAborted();
  };
  const think = fillText(rule.think, scene, groups);
  const say = fillText(rule.say, scene, groups);
  for (const text of chunksOf(think, rule.chunkSize)) {
    await pause();
    yield { type: 'reasoning', text };
  }
  for (const text of chunksOf(say, rule.chunkSize)) {
    await pause();
    yield { type: 'text', text };
  }
  if (!waited) await pause();
  if (rule.fail) {
    const { code, message, retryable, retryAfterMs } = rule.fail;
    throw new ModelError(code, message, { retryable, retryAfterMs });
  }
  let id = countCalls(request);
  let raws = '';
  for (const call of rule.calls) {
    const args = fillArgs(call.args, scene, groups) as Record<string, unknown>;
    const raw = JSON.stringify(args);
    raws += raw;
    id += 1;
    yield { type: 'toolCall', id: `call_${id}`, name: call.tool, args, raw };
  }
  yield { type: 'finish', stop: rule.calls.length > 0 ? 'tool' : 'end', usage: usageOf(request, think, say, raws) };
}

function countCalls(request: ModelRequest): number {
  return request.messages.reduce(
    (sum, message) => sum + (message.role === 'assistant' ? message.toolCalls.length : 0),
    0,
  );
}

/** Four bytes of UTF-8 count as a token, rounded up once for what goes in and once for what comes out. */
function usageOf(request: ModelRequest, think: string, say: string, calls: string): TokenUsage {
  const read = request.messages.reduce((sum, message) => {
    if (message.role === 'tool') return message.results.reduce((part, result) => part + bytes(result.content), sum);
    if (message.role === 'user') return sum + bytes(message.content);
    return message.toolCalls.reduce(
      (part, call) => part + bytes(JSON.stringify(call.args)),
      sum + bytes(message.content),
    );
  }, bytes(request.system));
  return {
    inputTokens: Math.ceil(read / 4),
    outputTokens: Math.ceil((bytes(think) + bytes(say) + bytes(calls)) / 4),
    cachedTokens: 0,
    reasoningTokens: Math.floor(bytes(think) / 4),
  };
}

const bytes = (text: string): number => Buffer.byteLength(text);
