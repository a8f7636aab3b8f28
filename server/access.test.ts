import { describe, expect, it } from 'vitest';
import { AppError } from '../core/protocol/errors.ts';
import { checkContentType, checkHost, checkOrigin, isPublic, tokenOf, tokenOfProtocols } from './access.ts';

const policy = { port: 3000, allowedHosts: ['chat.example.org', 'box.lan:8443'] };
const codeOf = (run: () => unknown): string => {
  try {
    const value = run();
    return typeof value === 'string' ? value : 'ok';
  } catch (error) {
    return error instanceof AppError ? error.code : `threw ${String(error)}`;
  }
};

describe('Host', () => {
  it.each([
    ['localhost:3000', 'loopback'],
    ['127.0.0.1:3000', 'loopback'],
    ['[::1]:3000', 'loopback'],
    ['LocalHost:3000', 'loopback'],
    ['chat.example.org', 'allowed'],
    ['chat.example.org:9999', 'allowed'],
    ['box.lan:8443', 'allowed'],
    ['box.lan', 'host_refused'],
    ['box.lan:3000', 'host_refused'],
    ['localhost', 'host_refused'],
    ['localhost:3001', 'host_refused'],
    ['evil.example:3000', 'host_refused'],
    ['localhost.evil.example:3000', 'host_refused'],
    ['127.0.0.1.nip.io:3000', 'host_refused'],
    ['evil.example@localhost:3000', 'host_refused'],
    ['localhost:3000@evil.example', 'host_refused'],
    ['localhost:3000, evil.example', 'host_refused'],
    ['localhost:03000x', 'host_refused'],
    ['0.0.0.0:3000', 'host_refused'],
    ['127.1:3000', 'host_refused'],
    ['[::ffff:127.0.0.1]:3000', 'host_refused'],
    ['', 'host_refused'],
    [undefined, 'host_refused'],
  ])('%s is %s', (host, expected) => {
    expect(codeOf(() => checkHost(host, policy))).toBe(expected);
  });

  it('needs no port in the header where the server listens on port 80', () => {
    expect(codeOf(() => checkHost('localhost', { ...policy, port: 80 }))).toBe('loopback');
  });
});

describe('Origin', () => {
  it.each([
    [undefined, 'localhost:3000', 'loopback', 'ok'],
    ['http://localhost:3000', 'localhost:3000', 'loopback', 'ok'],
    ['http://[::1]:3000', '[::1]:3000', 'loopback', 'ok'],
    ['https://localhost:3000', 'localhost:3000', 'loopback', 'origin_refused'],
    ['http://localhost:3001', 'localhost:3000', 'loopback', 'origin_refused'],
    ['http://127.0.0.1:3000', 'localhost:3000', 'loopback', 'origin_refused'],
    ['http://evil.example', 'localhost:3000', 'loopback', 'origin_refused'],
    ['http://localhost:3000.evil.example', 'localhost:3000', 'loopback', 'origin_refused'],
    ['http://localhost:3000@evil.example', 'localhost:3000', 'loopback', 'origin_refused'],
    ['null', 'localhost:3000', 'loopback', 'origin_refused'],
    ['', 'localhost:3000', 'loopback', 'origin_refused'],
    ['file://', 'localhost:3000', 'loopback', 'origin_refused'],
    ['https://chat.example.org', 'chat.example.org', 'allowed', 'ok'],
    ['https://chat.example.org', 'chat.example.org:443', 'allowed', 'ok'],
    ['http://chat.example.org:3000', 'chat.example.org:3000', 'allowed', 'ok'],
    ['https://chat.example.org:444', 'chat.example.org', 'allowed', 'origin_refused'],
  ] as const)('%s at %s (%s) is %s', (origin, host, kind, expected) => {
    expect(codeOf(() => checkOrigin(origin, host, kind))).toBe(expected);
  });
});

describe('content type', () => {
  it.each([
    ['application/json', undefined, 'ok'],
    ['Application/JSON; charset=UTF-8', undefined, 'ok'],
    ['application/json', 'identity', 'ok'],
    ['application/json', 'gzip', 'unsupported_media_type'],
    ['application/json; charset=utf-16', undefined, 'unsupported_media_type'],
    ['text/plain', undefined, 'unsupported_media_type'],
    ['text/plain; application/json', undefined, 'unsupported_media_type'],
    ['application/jsonp', undefined, 'unsupported_media_type'],
    ['application/x-www-form-urlencoded', undefined, 'unsupported_media_type'],
    ['multipart/form-data; boundary=x', undefined, 'unsupported_media_type'],
    [undefined, undefined, 'unsupported_media_type'],
  ])('%s with encoding %s is %s', (type, encoding, expected) => {
    expect(codeOf(() => checkContentType(type, encoding))).toBe(expected);
  });
});

describe('token', () => {
  it.each([
    [{ authorization: 'Bearer abc' }, 'abc'],
    [{ authorization: 'bearer  abc' }, 'abc'],
    [{ authorization: 'Basic abc', cookie: 'parley_session=def' }, null],
    [{ authorization: 'Bearer' }, null],
    [{ cookie: 'a=1; parley_session=def; b=2' }, 'def'],
    [{ cookie: 'xparley_session=def' }, null],
    [{ cookie: 'parley_session=' }, null],
    [{}, null],
  ])('%j carries %s', (headers, expected) => {
    expect(tokenOf(headers)).toBe(expected);
  });

  it('comes from the subprotocol pair of a socket', () => {
    expect(tokenOfProtocols('parley.v1, bearer.abc.def')).toBe('abc.def');
    expect(tokenOfProtocols('parley.v1')).toBeNull();
    expect(codeOf(() => tokenOfProtocols('bearer.abc'))).toBe('invalid');
    expect(codeOf(() => tokenOfProtocols(undefined))).toBe('invalid');
  });
});

describe('without a token', () => {
  it.each([
    ['GET', '/health', true],
    ['GET', '/', true],
    ['HEAD', '/assets/app.js', true],
    ['GET', '/w/demo/c/1', true],
    ['POST', '/api/v1/session', true],
    ['GET', '/api/v1/session', false],
    ['GET', '/api/v1/worlds', false],
    ['GET', '/api', false],
    ['GET', '/ws', false],
    ['GET', '/v1/models', false],
    ['POST', '/health', false],
    ['POST', '/', false],
  ])('%s %s: %s', (method, path, expected) => {
    expect(isPublic(method, path)).toBe(expected);
  });
});
