import type { Context } from 'hono';
import { AppError } from '../core/protocol/errors.ts';
import { jsonErrorPosition } from './json-position.ts';

/** Whether a request carries a body; a request made in process has no length header but a stream. */
export function hasBody(c: Context): boolean {
  const length = c.req.header('content-length');
  if (length !== undefined) return length.trim() !== '0';
  if (c.req.header('transfer-encoding') !== undefined) return true;
  const isInProcess = (c.env as { incoming?: unknown } | undefined)?.incoming === undefined;
  return isInProcess && c.req.method !== 'GET' && c.req.method !== 'HEAD' && c.req.raw.body !== null;
}

export function tooLarge(limit: number): AppError {
  return new AppError('too_large', `The body has more than ${limit} bytes`, { limit });
}

/** Parsed JSON; AppError `invalid_json` with position, line and column. */
export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const position = jsonErrorPosition(text);
    const before = text.slice(0, position).split('\n');
    const line = before.length;
    const column = (before.at(-1)?.length ?? 0) + 1;
    const found =
      position >= text.length
        ? 'it ends too early'
        : `unexpected ${JSON.stringify(text.slice(position, position + 1))}`;
    throw new AppError('invalid_json', `${what} is not JSON: ${found} at line ${line}, column ${column}`, {
      position,
      line,
      column,
    });
  }
}

async function readCapped(stream: ReadableStream<Uint8Array>, limit: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks);
    size += value.byteLength;
    if (size > limit) {
      await reader.cancel();
      throw tooLarge(limit);
    }
    chunks.push(value);
  }
}

/** The request's JSON, at most `limit` bytes; undefined where there is no body. Throws `too_large`, `invalid_json`. */
export async function readJson(c: Context, limit: number): Promise<unknown> {
  if (!hasBody(c)) return undefined;
  const hasLength = c.req.header('content-length') !== undefined;
  let bytes: Uint8Array;
  if (hasLength) {
    // The guard has refused a greater length, and the HTTP parser ends the body there.
    bytes = new Uint8Array(await c.req.raw.arrayBuffer());
  } else {
    const stream = c.req.raw.body as ReadableStream<Uint8Array> | null;
    bytes = stream === null ? new Uint8Array() : await readCapped(stream, limit);
  }
  if (bytes.byteLength > limit) throw tooLarge(limit);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new AppError('invalid_json', 'The body is not UTF-8', undefined, { cause: error });
  }
  return text.trim() === '' ? undefined : parseJson(text, 'The body');
}
