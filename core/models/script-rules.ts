/** The rules of a scripted model: read from YAML, checked, compiled. */
import { z } from 'zod';
import type { Scene } from '../ports.ts';
import { ERROR_STATUS, type ErrorCode } from '../protocol/errors.ts';
import { foldName } from '../protocol/ids.ts';
import { compilePattern, type Pattern } from '../safety/patterns.ts';
import { parseForeignYaml } from '../safety/yaml.ts';
import { codeOfStatus, isRetryable, scriptError } from './provider-errors.ts';

const MAX_SCRIPT_BYTES = 256 * 1024;
const MAX_RULES = 500;
const MAX_CALLS = 32;
const MAX_DELAY_MS = 600_000;

const Call = z.strictObject({
  tool: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must be a tool name of letters, digits, _ and -'),
  args: z.record(z.string(), z.unknown()).default({}),
});
const Failure = z.union([
  z.string().min(1).max(1000),
  z.int().min(400).max(599),
  z.strictObject({
    code: z.enum(Object.keys(ERROR_STATUS) as [ErrorCode, ...ErrorCode[]]).default('script_failed'),
    message: z.string().min(1).max(1000).optional(),
    retryable: z.boolean().optional(),
    retryAfterMs: z.int().min(0).max(MAX_DELAY_MS).optional(),
  }),
]);
const When = z.strictObject({
  contains: z.string().min(1).optional(),
  matches: z.string().min(1).optional(),
  from: z.string().min(1).optional(),
  turn: z.int().min(1).optional(),
  toolResult: z.string().optional(),
});
const RawRule = z.strictObject({
  when: When.default({}),
  think: z.string().optional(),
  say: z.string().optional(),
  call: z.union([Call, z.array(Call).min(1).max(MAX_CALLS)]).optional(),
  fail: Failure.optional(),
  delayMs: z.int().min(0).max(MAX_DELAY_MS).default(0),
  chunkSize: z.int().min(1).max(1_000_000).default(48),
});

export interface ScriptCall {
  tool: string;
  args: Record<string, unknown>;
}

export interface ScriptFailure {
  code: ErrorCode;
  message: string;
  retryable: boolean;
  retryAfterMs?: number | undefined;
}

/** One rule, ready to run. All conditions of `when` must hold; a rule without any always fits. */
export interface ScriptRule {
  contains: string | null;
  matches: Pattern | null;
  from: string | null;
  turn: number | null;
  toolResult: Pattern | null;
  think: string;
  say: string;
  calls: readonly ScriptCall[];
  fail: ScriptFailure | null;
  /** Wait before each chunk, in milliseconds. */
  delayMs: number;
  /** Characters of a chunk. */
  chunkSize: number;
}

/** The rule that answers a scene, with the groups of its `matches`. */
export interface ScriptMatch {
  rule: ScriptRule;
  groups: readonly string[];
}

/** Reads a script. Throws ModelError `script_invalid` that names the file, the rule (from 1) and the field. */
export function parseScript(text: string, file: string): readonly ScriptRule[] {
  const parsed = parseForeignYaml(text, MAX_SCRIPT_BYTES);
  if (!parsed.ok) throw scriptError('script_invalid', `The script ${file} cannot be read: ${parsed.problem}`);
  if (!Array.isArray(parsed.value)) {
    throw scriptError('script_invalid', `The script ${file} must be a list of rules, such as "- say: Hello"`);
  }
  if (parsed.value.length > MAX_RULES) {
    throw scriptError('script_invalid', `The script ${file} has more than ${MAX_RULES} rules`);
  }
  return parsed.value.map((value: unknown, index) => parseRule(value, file, index + 1));
}

function parseRule(value: unknown, file: string, number: number): ScriptRule {
  const raw = RawRule.safeParse(value);
  if (!raw.success) {
    const issue = raw.error.issues[0];
    const field = issue?.path.join('.') || 'the rule';
    throw scriptError(
      'script_invalid',
      `The script ${file}, rule ${number}, ${field}: ${issue?.message ?? 'is invalid'}`,
    );
  }
  const compile = (field: string, source: string | undefined): Pattern | null => {
    if (source === undefined) return null;
    const result = compilePattern(source);
    if (result.ok) return result.pattern;
    throw scriptError('script_invalid', `The script ${file}, rule ${number}, when.${field}: ${result.problem}`);
  };
  const { when, call, fail, say = '', think = '', delayMs, chunkSize } = raw.data;
  return {
    contains: when.contains?.toLowerCase() ?? null,
    matches: compile('matches', when.matches),
    from: when.from === undefined ? null : foldName(when.from),
    turn: when.turn ?? null,
    toolResult: compile('toolResult', when.toolResult),
    think,
    say,
    calls: call === undefined ? [] : Array.isArray(call) ? call : [call],
    fail: fail === undefined ? null : failureOf(fail),
    delayMs,
    chunkSize,
  };
}

function failureOf(fail: z.infer<typeof Failure>): ScriptFailure {
  if (typeof fail === 'number') {
    return { ...codeOfStatus(fail), message: `The script answers with status ${fail}` };
  }
  if (typeof fail === 'string') return { code: 'script_failed', message: fail, retryable: false };
  return {
    code: fail.code,
    message: fail.message ?? `The script fails with ${fail.code}`,
    retryable: fail.retryable ?? isRetryable(fail.code),
    retryAfterMs: fail.retryAfterMs,
  };
}

/** The first rule that fits the scene; null is silence. */
export function findRule(rules: readonly ScriptRule[], scene: Scene): ScriptMatch | null {
  const text = scene.text.toLowerCase();
  const from = foldName(scene.from);
  for (const rule of rules) {
    if (rule.contains !== null && !text.includes(rule.contains)) continue;
    if (rule.from !== null && rule.from !== from) continue;
    if (rule.turn !== null && rule.turn !== scene.turn) continue;
    if (rule.toolResult !== null && (scene.toolResult === undefined || !rule.toolResult.test(scene.toolResult)))
      continue;
    const groups = rule.matches === null ? [] : rule.matches.groups(scene.text);
    if (groups === null) continue;
    return { rule, groups };
  }
  return null;
}
