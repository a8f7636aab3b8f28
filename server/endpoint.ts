import type { Context, Hono } from 'hono';
import { describeRoute, resolver } from 'hono-openapi';
import { z } from 'zod';
import type { Actor } from '../core/parley.ts';
import type { Idempotency } from '../core/ports.ts';
import { ERROR_STATUS, ErrorBody, type ErrorCode } from '../core/protocol/errors.ts';
import { readJson } from './body.ts';
import { BOUNDS } from './bounds.ts';
import { idempotency } from './idempotency.ts';
import { parseInput } from './issues.ts';

/** What the guards leave for a handler. */
export interface ServerEnv {
  Variables: { actor: Actor; token: string | null; isLocal: boolean };
}
export type ServerContext = Context<ServerEnv>;
export type ServerApp = Hono<ServerEnv>;

type Ids<P extends string> = P extends `${string}:${infer Rest}`
  ? Rest extends `${infer Name}/${infer Tail}`
    ? Name | Ids<Tail>
    : Rest
  : never;

export interface Call<P extends string, Q, B> {
  actor: Actor;
  ids: Record<Ids<P>, string>;
  query: Q;
  body: B;
  /** Set where the client sent an Idempotency-Key to a creating call. */
  idem: Idempotency | undefined;
  /** Aborts when the client goes away. */
  signal: AbortSignal;
}

interface Endpoint<P extends string, Q, B, R> {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  path: P;
  summary: string;
  tag: string;
  description?: string;
  query?: z.ZodType<Q>;
  body?: z.ZodType<B>;
  /** Without a schema it answers 204. */
  answer?: { status: 200 | 201; schema: z.ZodType<R>; description?: string };
  /** An outcome in the answer's own shape that came too late: 409. */
  conflict?: { is: (value: R) => boolean; description: string };
  /** Creating calls take an Idempotency-Key. */
  creates?: boolean;
  /** Codes beyond those that every call may answer with. */
  errors?: readonly ErrorCode[];
  run: (call: Call<P, Q, B>) => Promise<R>;
}

const NoQuery = z.strictObject({});
const EVERYWHERE: readonly ErrorCode[] = ['unauthorized', 'forbidden', 'host_refused', 'origin_refused', 'internal'];

/** The error answers of the OpenAPI document: one entry per status, naming the codes. */
export function errorResponses(codes: readonly ErrorCode[]) {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of codes) byStatus.set(ERROR_STATUS[code], [...(byStatus.get(ERROR_STATUS[code]) ?? []), code]);
  const content = { 'application/json': { schema: resolver(ErrorBody) } };
  return Object.fromEntries(
    [...byStatus].map(([status, of]) => [
      String(status),
      { description: of.map((code) => `\`${code}\``).join(', '), content },
    ]),
  );
}

/** Query parameters of the OpenAPI document, from the schema that also parses them. */
function queryParameters(schema: z.ZodType) {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return Object.entries(json.properties ?? {}).map(([name, part]) => ({
    in: 'query' as const,
    name,
    required: json.required?.includes(name) ?? false,
    schema: part as object,
  }));
}

const KEY_PARAMETER = {
  in: 'header' as const,
  name: 'Idempotency-Key',
  required: false,
  description: 'The same key and body gives the same answer once; another body is `idempotency_mismatch`',
  schema: { type: 'string' as const, minLength: 1, maxLength: 255 },
};

function codesOf(endpoint: {
  path: string;
  body?: unknown;
  query?: unknown;
  creates?: boolean;
  errors?: readonly ErrorCode[];
}) {
  const codes = new Set<ErrorCode>([...EVERYWHERE, ...(endpoint.errors ?? [])]);
  if (endpoint.path.includes(':')) codes.add('not_found');
  if (endpoint.query !== undefined || endpoint.body !== undefined) codes.add('invalid');
  if (endpoint.body !== undefined) {
    for (const code of ['invalid_json', 'too_large', 'unsupported_media_type'] as const) codes.add(code);
  }
  if (endpoint.creates) for (const code of ['idempotency_mismatch', 'storage_full'] as const) codes.add(code);
  return [...codes];
}

/** Repeated or unknown query parameters are errors as unknown fields of a body are. */
function queryOf(c: Context): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(c.req.queries()).map(([name, values]) => [name, values.length === 1 ? (values[0] ?? '') : values]),
  );
}

/**
 * One call of the API: the schemas that parse it also describe it in the OpenAPI document. A missing body counts as
 * an empty object. The handler decides nothing: it calls the core and answers.
 */
export function endpoint<const P extends string, Q = unknown, B = unknown, R = void>(
  app: ServerApp,
  spec: Endpoint<P, Q, B, R>,
): void {
  const { answer, body, conflict, query } = spec;
  const ids = [...spec.path.matchAll(/:(\w+)/g)].map((match) => match[1] ?? '');
  const success =
    answer === undefined
      ? { 204: { description: 'Done' } }
      : {
          [answer.status]: {
            description: answer.description ?? spec.summary,
            content: { 'application/json': { schema: resolver(answer.schema) } },
          },
        };
  const failures = errorResponses(codesOf(spec));
  if (answer !== undefined && conflict !== undefined) {
    const schema = z.union([answer.schema, ErrorBody]);
    const codes = failures['409'] === undefined ? '' : `; or ${failures['409'].description}`;
    const content = { 'application/json': { schema: resolver(schema) } };
    failures['409'] = { description: `${conflict.description}${codes}`, content };
  }
  app.on(
    spec.method.toUpperCase(),
    spec.path,
    describeRoute({
      summary: spec.summary,
      tags: [spec.tag],
      ...(spec.description === undefined ? {} : { description: spec.description }),
      parameters: [...(query === undefined ? [] : queryParameters(query)), ...(spec.creates ? [KEY_PARAMETER] : [])],
      ...(body === undefined
        ? {}
        : {
            requestBody: {
              required: true,
              content: { 'application/json': { schema: resolver(body, { io: 'input' }) } },
            },
          }),
      responses: { ...success, ...failures },
    }),
    async (c: ServerContext) => {
      const raw = body === undefined ? undefined : ((await readJson(c, BOUNDS.bodyBytes)) ?? {});
      const parsed = body === undefined ? undefined : parseInput(body, raw, 'body');
      const parameters = parseInput<unknown>(query ?? NoQuery, queryOf(c), 'query');
      const actor = c.get('actor');
      const named = Object.fromEntries(ids.map((id) => [id, c.req.param(id) ?? '']));
      const key = spec.creates ? c.req.header('idempotency-key') : undefined;
      const value = await spec.run({
        actor,
        ids: named as Record<Ids<P>, string>,
        query: parameters as Q,
        body: parsed as B,
        idem: idempotency(actor, { path: spec.path, ids: Object.values(named) }, key, raw),
        get signal() {
          return c.req.raw.signal;
        },
      });
      if (answer === undefined) return c.body(null, 204);
      return c.json(value as object, conflict?.is(value) ? 409 : answer.status);
    },
  );
}
