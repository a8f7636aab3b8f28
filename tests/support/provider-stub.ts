/** Model providers on a free loopback port that speak the real protocols, well or badly. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkAnthropic, checkOpenAi } from './provider-checks.ts';

export type StubProtocol = 'anthropic' | 'openai';

export interface StubRequest {
  path: string;
  headers: IncomingMessage['headers'];
  /** The parsed body; `messages` and `model` are in it. */
  body: Record<string, unknown>;
  /** Text of the last message of the request, whatever its shape. */
  lastText: string;
  /** The system prompt, '' where there is none. */
  system: string;
}

/** A good answer. */
export interface StubAnswer {
  text?: string;
  think?: string;
  calls?: readonly { id: string; name: string; args: unknown }[];
  /** Null leaves the usage out. */
  usage?: { input: number; output: number; cached?: number; reasoning?: number } | null;
  /** As the provider calls it; by default what fits. */
  stop?: string;
  /** Characters of one event; default 7. */
  chunkSize?: number;
  /** Wait before the first byte, in milliseconds. */
  delayMs?: number;
  /** Wait between events, in milliseconds. */
  chunkDelayMs?: number;
}

/** Anything else that a server may do. */
export interface StubRaw {
  status?: number;
  headers?: Record<string, string>;
  /** Written one after the other, each flushed to the socket on its own. */
  body?: readonly (string | Uint8Array)[];
  /** After the body: end well, stay open, or cut the connection. `silent` never sends a header, `refuse` cuts without one. */
  ending?: 'end' | 'hang' | 'cut' | 'silent' | 'refuse';
}

export type StubReply = StubAnswer | { raw: StubRaw };

export interface ProviderStub {
  /** The base URL to configure: with /v1 for `openai`. */
  url: string;
  requests: StubRequest[];
  /** Resolves when the client has closed the connection of the n-th request (from 1) before its answer ended. */
  aborted(n: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts a provider. `reply` decides by the request. A request that the real API would refuse gets a 400 that says
 * why, so that a test with a bad request fails.
 */
export async function startProviderStub(
  protocol: StubProtocol,
  reply: (request: StubRequest, index: number) => StubReply | Promise<StubReply>,
): Promise<ProviderStub> {
  const requests: StubRequest[] = [];
  const aborts = new Map<number, { promise: Promise<void>; resolve: () => void }>();
  const abortOf = (n: number) => {
    const known = aborts.get(n);
    if (known) return known;
    const made = deferred();
    aborts.set(n, made);
    return made;
  };

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(await readBody(request)) as Record<string, unknown>;
    const seen = { path: request.url ?? '', headers: request.headers, body, ...textsOf(body) };
    requests.push(seen);
    const index = requests.length;
    response.on('close', () => {
      if (!response.writableFinished) abortOf(index).resolve();
    });
    const complaints = protocol === 'anthropic' ? checkAnthropic(body) : checkOpenAi(body);
    const wanted = protocol === 'anthropic' ? '/v1/messages' : '/v1/chat/completions';
    if (!seen.path.endsWith(wanted))
      return sendJson(response, 404, { error: { message: `no such path ${seen.path}` } });
    if (complaints.length > 0) {
      return sendJson(response, 400, {
        type: 'error',
        error: { type: 'invalid_request_error', message: complaints.join('; ') },
      });
    }
    const answer = await reply(seen, index);
    if ('raw' in answer) return sendRaw(response, answer.raw);
    await pause(answer.delayMs ?? 0);
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    const events = protocol === 'anthropic' ? anthropicEvents(answer) : openAiEvents(answer);
    for (const event of events) {
      if (response.destroyed) return;
      response.write(event);
      if (answer.chunkDelayMs) await pause(answer.chunkDelayMs);
    }
    response.end();
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, { error: { message: String(error) } });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const root = `http://127.0.0.1:${port}`;
  return {
    url: protocol === 'openai' ? `${root}/v1` : root,
    requests,
    aborted: (n) => abortOf(n).promise,
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Server-sent events of the Messages API. */
export function anthropicEvents(answer: StubAnswer): string[] {
  const usage = answer.usage === undefined ? { input: 10, output: 5 } : answer.usage;
  const cached = usage?.cached ?? 0;
  const event = (type: string, fields: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
  const events = [
    event('message_start', {
      message: {
        ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'stub', content: [], stop_reason: null },
        ...(usage && {
          usage: {
            input_tokens: usage.input - cached,
            cache_read_input_tokens: cached,
            cache_creation_input_tokens: 0,
            output_tokens: 1,
          },
        }),
      },
    }),
    event('ping', {}),
  ];
  let index = 0;
  const block = (start: object, deltas: object[]): void => {
    events.push(event('content_block_start', { index, content_block: start }));
    events.push(...deltas.map((delta) => event('content_block_delta', { index, delta })));
    events.push(event('content_block_stop', { index }));
    index += 1;
  };
  const size = answer.chunkSize ?? 7;
  if (answer.think !== undefined) {
    const deltas = pieces(answer.think, size).map((thinking) => ({ type: 'thinking_delta', thinking }));
    block({ type: 'thinking', thinking: '', signature: '' }, [
      ...deltas,
      { type: 'signature_delta', signature: 'c2lnbmVk' },
    ]);
  }
  if (answer.text !== undefined) {
    const deltas = pieces(answer.text, size).map((text) => ({ type: 'text_delta', text }));
    block({ type: 'text', text: '' }, deltas);
  }
  for (const { id, name, args } of answer.calls ?? []) {
    const raw = typeof args === 'string' ? args : JSON.stringify(args);
    const deltas = pieces(raw, size).map((partial_json) => ({ type: 'input_json_delta', partial_json }));
    block({ type: 'tool_use', id, name, input: {} }, deltas);
  }
  const stop = answer.stop ?? (answer.calls?.length ? 'tool_use' : 'end_turn');
  events.push(
    event('message_delta', {
      delta: { stop_reason: stop, stop_sequence: null },
      ...(usage && { usage: { output_tokens: usage.output } }),
    }),
  );
  events.push(event('message_stop', {}));
  return events;
}

/** Server-sent events of chat completions. */
export function openAiEvents(answer: StubAnswer): string[] {
  const usage = answer.usage === undefined ? { input: 10, output: 5 } : answer.usage;
  const base = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'stub' };
  const event = (fields: object): string => `data: ${JSON.stringify({ ...base, ...fields })}\n\n`;
  const delta = (value: object, finish: string | null = null): string =>
    event({ choices: [{ index: 0, delta: value, finish_reason: finish }] });
  const size = answer.chunkSize ?? 7;
  const events = [delta({ role: 'assistant', content: '' })];
  events.push(...pieces(answer.think ?? '', size).map((text) => delta({ reasoning_content: text })));
  events.push(...pieces(answer.text ?? '', size).map((text) => delta({ content: text })));
  for (const [index, { id, name, args }] of (answer.calls ?? []).entries()) {
    const raw = typeof args === 'string' ? args : JSON.stringify(args);
    events.push(delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }));
    for (const piece of pieces(raw, size))
      events.push(delta({ tool_calls: [{ index, function: { arguments: piece } }] }));
  }
  events.push(delta({}, answer.stop ?? (answer.calls?.length ? 'tool_calls' : 'stop')));
  if (usage) {
    events.push(
      event({
        choices: [],
        usage: {
          prompt_tokens: usage.input,
          completion_tokens: usage.output,
          total_tokens: usage.input + usage.output,
          prompt_tokens_details: { cached_tokens: usage.cached ?? 0 },
          completion_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
        },
      }),
    );
  }
  events.push('data: [DONE]\n\n');
  return events;
}

function pieces(text: string, size: number): string[] {
  const characters = Array.from(text);
  const out: string[] = [];
  for (let at = 0; at < characters.length; at += size) out.push(characters.slice(at, at + size).join(''));
  return out;
}

async function sendRaw(response: ServerResponse, raw: StubRaw): Promise<void> {
  if (raw.ending === 'silent') return;
  if (raw.ending === 'refuse') return void response.destroy();
  response.socket?.setNoDelay(true);
  response.writeHead(raw.status ?? 200, { 'content-type': 'text/event-stream', ...raw.headers });
  response.flushHeaders();
  for (const part of raw.body ?? []) {
    await new Promise<void>((resolve) => response.write(part, () => resolve()));
    // A turn of the event loop between writes, so that they reach the client as chunks of their own.
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  if (raw.ending === 'hang') return;
  if (raw.ending === 'cut') response.destroy();
  else response.end();
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function textsOf(body: Record<string, unknown>): { lastText: string; system: string } {
  const messages = Array.isArray(body['messages']) ? (body['messages'] as { role: string; content: unknown }[]) : [];
  const system = body['system'] ?? messages.find((message) => message.role === 'system')?.content;
  return { lastText: textIn(messages.at(-1)?.content), system: textIn(system) };
}

function textIn(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return (content as { text?: unknown; content?: unknown }[])
    .map((block) => textIn(block.text ?? block.content))
    .join('\n');
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

function pause(ms: number): Promise<void> {
  return ms <= 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, ms));
}
