/** The one place that fetches from elsewhere. */

export interface OutboundOptions {
  /** The only origin that may be reached, such as `https://api.example.com`. */
  origin: string;
  /** Most bytes of a response's body. */
  maxBytes: number;
  /** Until the first byte of the body, in milliseconds. */
  firstByteTimeoutMs: number;
  /** Between two reads of the body, in milliseconds. */
  idleTimeoutMs: number;
  /** Calls back once after `ms`; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

export type OutboundFaultKind = 'address' | 'redirect' | 'size' | 'timeout';

/** The exchange was ended from our side. */
export class OutboundFault extends Error {
  override readonly name = 'OutboundFault';
  readonly kind: OutboundFaultKind;

  constructor(kind: OutboundFaultKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** What became known of the last request, whatever a client library made of it. */
export interface Exchange {
  status: number | null;
  headers: Headers | null;
  bytes: number;
  fault: OutboundFault | null;
}

export interface Outbound {
  fetch: typeof globalThis.fetch;
  readonly exchange: Readonly<Exchange>;
}

/**
 * Makes a fetch for one call to one origin. Other origins and redirects are refused, so that a key never leaves
 * for another host; the body is bounded in bytes and ends with a fault where no byte comes for too long. An abort
 * closes the connection.
 */
export function openOutbound(options: OutboundOptions): Outbound {
  const exchange: Exchange = { status: null, headers: null, bytes: 0, fault: null };

  async function guarded(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.origin !== options.origin) {
      throw fail(new OutboundFault('address', `${url.origin} is not the configured address ${options.origin}`));
    }
    Object.assign(exchange, { status: null, headers: null, bytes: 0, fault: null });
    const connection = new AbortController();
    const outer = init?.signal;
    const onAbort = (): void => connection.abort(outer?.reason);
    if (outer?.aborted) onAbort();
    outer?.addEventListener('abort', onAbort, { once: true });
    const timer = watch(options, (fault) => connection.abort(fail(fault)));
    const finish = (): void => {
      timer.stop();
      outer?.removeEventListener('abort', onAbort);
    };
    try {
      const response = await fetch(input, { ...init, redirect: 'manual', signal: connection.signal });
      exchange.status = response.status;
      exchange.headers = response.headers;
      if (response.status >= 300 && response.status < 400) {
        const to = response.headers.get('location');
        connection.abort();
        throw fail(new OutboundFault('redirect', `it redirects${to ? ` to ${hostOf(to, url)}` : ''}`));
      }
      if (response.body === null) {
        finish();
        return response;
      }
      const body = bounded(response.body, connection, timer, finish);
      return new Response(body, {
        status: response.status,
        statusText: response.statusText,
        headers: response.headers,
      });
    } catch (error) {
      finish();
      throw exchange.fault ?? error;
    }
  }

  function fail(fault: OutboundFault): OutboundFault {
    exchange.fault ??= fault;
    return exchange.fault;
  }

  function bounded(
    source: ReadableStream<Uint8Array>,
    connection: AbortController,
    timer: Watch,
    finish: () => void,
  ): ReadableStream<Uint8Array> {
    const reader = source.getReader();
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        try {
          timer.listen();
          const { done, value } = await reader.read();
          if (done) {
            finish();
            controller.close();
            return;
          }
          timer.heard();
          exchange.bytes += value.byteLength;
          if (exchange.bytes > options.maxBytes) {
            throw fail(new OutboundFault('size', `it sent more than ${options.maxBytes} bytes`));
          }
          controller.enqueue(value);
        } catch (error) {
          finish();
          connection.abort();
          controller.error(exchange.fault ?? error);
        }
      },
      cancel(reason) {
        finish();
        connection.abort(reason);
      },
    });
  }

  return { fetch: guarded, exchange };
}

interface Watch {
  /** From here on silence counts. */
  listen(): void;
  heard(): void;
  stop(): void;
}

/** Times out when nothing is heard while somebody listens; a reader that is slow itself is no silence. */
function watch(options: OutboundOptions, onTimeout: (fault: OutboundFault) => void): Watch {
  let listening = true;
  let count = 0;
  let cancel = options.after(options.firstByteTimeoutMs, () => {
    onTimeout(new OutboundFault('timeout', `no answer began within ${options.firstByteTimeoutMs / 1000} s`));
  });
  // One timer per silence and not per chunk: it looks whether something was heard meanwhile.
  const arm = (): void => {
    const before = count;
    cancel = options.after(options.idleTimeoutMs, () => {
      if (!listening || count !== before) arm();
      else onTimeout(new OutboundFault('timeout', `it fell silent for ${options.idleTimeoutMs / 1000} s`));
    });
  };
  return {
    listen() {
      listening = true;
    },
    heard() {
      listening = false;
      count += 1;
      if (count > 1) return;
      cancel();
      arm();
    },
    stop: () => cancel(),
  };
}

function hostOf(location: string, base: URL): string {
  return URL.canParse(location, base.href) ? new URL(location, base.href).origin : 'another address';
}
