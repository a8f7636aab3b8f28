import { connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ERROR_STATUS, ErrorBody, type ErrorCode } from '../core/protocol/errors.ts';
import { type RealServer, realServer } from '../server/testing/real-server.ts';

let server: RealServer;
let chat: string;
beforeAll(async () => {
  server = await realServer({ demo: true });
  chat = String((await server.call('POST', '/api/v1/worlds/demo/chats', {})).body['id']);
});
afterAll(() => server.close());

async function send(
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: string | Uint8Array<ArrayBuffer>,
) {
  const authorization = `Bearer ${server.parley.ownerToken}`;
  const init = { method, headers: { authorization, ...headers }, ...(body === undefined ? {} : { body }) };
  const response = await fetch(`${server.url}${path}`, init);
  const text = await response.text();
  return { status: response.status, text, headers: response.headers };
}

/** The one shape: a known code with its own status, a message, no stack and no path of the source. */
function expectError(status: number, text: string): ErrorCode {
  const body = ErrorBody.parse(JSON.parse(text));
  expect(Object.keys(ERROR_STATUS)).toContain(body.error);
  expect(ERROR_STATUS[body.error as ErrorCode]).toBe(status);
  expect(text).not.toMatch(/\bat .*:\d+:\d+|node_modules|core\/|server\//);
  return body.error as ErrorCode;
}

const JSON_TYPE = { 'content-type': 'application/json' };
const W = '/api/v1/worlds';

describe('a request is refused before routing', () => {
  it.each([
    ['a foreign origin', 'GET', W, { origin: 'http://evil.example' }, undefined, 'origin_refused'],
    ['the origin null', 'POST', W, { ...JSON_TYPE, origin: 'null' }, '{"name":"x"}', 'origin_refused'],
    ['our origin over https', 'GET', W, { origin: 'https://localhost' }, undefined, 'origin_refused'],
    [
      'a foreign origin at an unknown path',
      'GET',
      '/nothing',
      { origin: 'http://evil.example' },
      undefined,
      'origin_refused',
    ],
    ['JSON as text', 'POST', W, { 'content-type': 'text/plain' }, '{"name":"x"}', 'unsupported_media_type'],
    ['a form', 'POST', W, { 'content-type': 'application/x-www-form-urlencoded' }, 'name=x', 'unsupported_media_type'],
    [
      'a body on DELETE that is no JSON',
      'DELETE',
      `${W}/demo`,
      { 'content-type': 'text/plain' },
      'x',
      'unsupported_media_type',
    ],
    ['a compressed body', 'POST', W, { ...JSON_TYPE, 'content-encoding': 'gzip' }, 'x', 'unsupported_media_type'],
    ['no token', 'GET', W, { authorization: '' }, undefined, 'unauthorized'],
    ['another scheme', 'GET', W, { authorization: 'Basic YTpi' }, undefined, 'unauthorized'],
    ['no token at an unknown path of the API', 'GET', '/api/v1/none', { authorization: '' }, undefined, 'unauthorized'],
    ['no token at an encoded path', 'GET', '/%61pi/v1/worlds', { authorization: '' }, undefined, 'unauthorized'],
    ['no token at a bridge', 'POST', '/v1/chat/completions', { authorization: '' }, undefined, 'unauthorized'],
  ])('%s', async (_name, method, path, headers, body, code) => {
    const { status, text } = await send(method, path, headers, body);
    expect(expectError(status, text)).toBe(code);
  });

  it.each([
    ['a rebound name', 'GET /health HTTP/1.1\r\nHost: evil.example'],
    ['another port', 'GET /health HTTP/1.1\r\nHost: localhost:1'],
    ['no host', 'GET /health HTTP/1.1\r\nX: y'],
    ['no host, the old way', 'GET /health HTTP/1.0\r\nX: y'],
    ['an address with another host', 'GET http://localhost/health HTTP/1.1\r\nHost: evil.example'],
  ])('%s', async (_name, head) => {
    const answer = await raw(`${head}\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    expect(answer).toContain('"host_refused"');
  });

  it('a body that says it is too long, before it is sent', async () => {
    const host = new URL(server.url).host;
    const head = `POST ${W} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n`;
    const answer = await raw(head);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toContain('"too_large"');
  });

  it('a body in pieces that grows too long', async () => {
    const chunk = new TextEncoder().encode(' '.repeat(100_000));
    let sent = 0;
    const body = new ReadableStream({
      pull(controller) {
        sent += 1;
        if (sent > 30) controller.close();
        else controller.enqueue(chunk);
      },
    });
    const headers = { ...JSON_TYPE, authorization: `Bearer ${server.parley.ownerToken}` };
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
    const response = await fetch(`${server.url}${W}`, init);
    expect(expectError(response.status, await response.text())).toBe('too_large');
  });
});

describe('broken input is named', () => {
  it('JSON by line and column', async () => {
    const { status, text } = await send('POST', W, JSON_TYPE, '{\n  "name": }');
    expectError(status, text);
    expect(JSON.parse(text)).toMatchObject({ error: 'invalid_json', details: { position: 12, line: 2, column: 11 } });
  });

  it('a body that is not UTF-8', async () => {
    const { status, text } = await send('POST', W, JSON_TYPE, new Uint8Array([0x22, 0xff, 0x22]));
    expect(expectError(status, text)).toBe('invalid_json');
  });

  it('an unknown and a wrong field, each in the message and the list', async () => {
    const { status, text } = await send('POST', W, JSON_TYPE, '{"name":"x","nmae":1,"turnLimit":"five"}');
    expect(status).toBe(400);
    const body = ErrorBody.parse(JSON.parse(text));
    expect(body.message).toContain('nmae');
    expect(body.message).toContain('turnLimit');
    const { issues } = body.details as { issues: { path: string }[] };
    expect(issues.map((issue) => issue.path).sort()).toEqual(['nmae', 'turnLimit']);
  });

  it.each([
    'limit=x',
    'limit=-1',
    'limit=0',
    'limit=1.5',
    'limit=',
    'limit=1e3',
    'before=x',
    'limit=1&limit=2',
    'nope=1',
  ])('a query of ?%s', async (query) => {
    const { status, text } = await send('GET', `${W}/demo/chats/${chat}/messages?${query}`, {});
    expect(expectError(status, text)).toBe('invalid');
  });

  it('a method that a path does not have, with those that it has', async () => {
    const { status, text, headers } = await send('PUT', W, JSON_TYPE, '{}');
    expect(expectError(status, text)).toBe('method_not_allowed');
    expect(headers.get('allow')).toBe('GET, POST');
  });
});

it('every call answers garbage in the one shape, and never with 500', async () => {
  const document = (await server.call('GET', '/api/v1/openapi.json')).body as {
    paths: Record<string, Record<string, unknown>>;
  };
  const calls = Object.entries(document.paths).flatMap(([path, of]) =>
    Object.keys(of).map((method) => ({ path, method })),
  );
  // What would end the test's own access, or never ends.
  const usable = calls.filter(
    ({ path, method }) =>
      !path.endsWith('/stream') && !(path === '/api/v1/session' && method === 'post') && !path.endsWith('/test'),
  );
  const id = fc.oneof(
    fc.constantFrom(
      'demo',
      'none',
      '..%2f..%2fetc',
      '%00',
      '%zz',
      '%F0%9F%98%80',
      'a'.repeat(3000),
      '__proto__',
      'constructor',
      '.',
      '%2e%2e',
    ),
    fc.string({ minLength: 1, maxLength: 20 }).map((text) => encodeURIComponent(text)),
  );
  const body = fc.oneof(
    fc.constant(undefined),
    fc.json(),
    fc.string(),
    fc.constantFrom(
      '',
      'null',
      '[]',
      '0',
      '"x"',
      '{"__proto__":{"a":1}}',
      '{"name":null}',
      '{"content":5}',
      `${'['.repeat(50_000)}`,
    ),
    fc
      .record({ name: fc.anything(), content: fc.anything(), role: fc.anything() })
      .map(
        (value) => JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? String(part) : part)) ?? '',
      ),
  );
  const query = fc.oneof(
    fc.constant(''),
    fc.constantFrom('?limit=abc', '?after=-1', '?wait=soon', '?q=', '?q=%22%27*(', '?x[]=1'),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...usable),
      fc.array(id, { minLength: 3, maxLength: 3 }),
      body,
      query,
      async (call, ids, sent, search) => {
        let next = 0;
        const path = call.path.replace(/\{\w+\}/g, () => ids[next++] ?? 'x');
        const isDelete = call.method === 'delete' && (path.endsWith('/demo') || path.startsWith('/api/v1/tokens'));
        fc.pre(!isDelete);
        const withBody = sent !== undefined && call.method !== 'get';
        const { status, text } = await send(
          call.method.toUpperCase(),
          path + search,
          withBody ? JSON_TYPE : {},
          withBody ? sent : undefined,
        );
        expect(status).not.toBe(500);
        if (status >= 400) expectError(status, text);
      },
    ),
    { numRuns: 300 },
  );
  expect((await server.call('GET', '/health')).status).toBe(200);
});

/** What the server answers to these bytes, until it closes or has said enough. */
function raw(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (chunk) => {
      text += chunk.toString();
      if (text.includes('"error"') && text.includes('}')) socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
  });
}
