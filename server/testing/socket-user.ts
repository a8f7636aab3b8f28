import { once } from 'node:events';
import { WebSocket } from 'ws';

export interface Frame {
  type: string;
  seq?: number;
  [key: string]: unknown;
}

/** A client of the socket that keeps what it hears and can wait for a frame. */
export interface SocketUser {
  ws: WebSocket;
  frames: Frame[];
  send(frame: unknown): void;
  /** The first frame, heard already or to come, that `is` accepts. */
  until(is: (frame: Frame) => boolean): Promise<Frame>;
  closed: Promise<number>;
}

export function openUser(
  url: string,
  token: string | null,
  options: { headers?: Record<string, string> } = {},
): SocketUser {
  const protocols = ['parley.v1', ...(token === null ? [] : [`bearer.${token}`])];
  const ws = new WebSocket(`${url.replace('http', 'ws')}/ws`, protocols, options);
  const frames: Frame[] = [];
  const waiting = new Set<() => void>();
  ws.on('message', (bytes) => {
    frames.push(JSON.parse(bytes.toString()));
    for (const wake of waiting) wake();
  });
  return {
    ws,
    frames,
    send: (frame) => ws.send(typeof frame === 'string' ? frame : JSON.stringify(frame)),
    until: (is) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = frames.find(is);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        ws.once('close', (code) => reject(new Error(`closed with ${code}`)));
        look();
      }),
    closed: new Promise((resolve) => ws.once('close', (code) => resolve(code))),
  };
}

/** An open socket; rejects with the HTTP status where the upgrade is refused. */
export async function connectUser(...args: Parameters<typeof openUser>): Promise<SocketUser> {
  const user = openUser(...args);
  const refused = new Promise<never>((_, reject) => {
    user.ws.once('unexpected-response', (_request, response) => {
      let body = '';
      response.on('data', (chunk) => {
        body += String(chunk);
      });
      response.on('end', () =>
        reject(
          Object.assign(new Error(`refused with ${response.statusCode}`), {
            status: response.statusCode,
            body: JSON.parse(body),
          }),
        ),
      );
    });
  });
  await Promise.race([once(user.ws, 'open'), refused]);
  return user;
}
