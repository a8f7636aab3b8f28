import { randomUUID } from 'node:crypto';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import type {
  AgentSettings,
  Approval,
  Chat,
  ProviderStatus,
  Turn,
  World,
  WorldAgent,
  WorldSettings,
} from '../core/protocol/entities.ts';
import { AppError, ERROR_STATUS, type ErrorCode } from '../core/protocol/errors.ts';
import type { WorldEvent } from '../core/protocol/events.ts';
import type {
  AnswerApproval,
  AnsweredApproval,
  MessagePage,
  Posted,
  ProviderTest,
  WorldDetail,
} from '../core/protocol/requests.ts';
import { CommandError } from './io.ts';

/** A way to one server: over the network, or into one that lives in this process. */
export interface Connection {
  /** The address, for messages to the person. */
  url: string;
  /** The data directory is open in this process: nobody else can work on it meanwhile. */
  isLocal?: boolean;
  /** `path` starts with a slash; headers of access are added by the connection. Rejects when the server cannot be reached. */
  request(path: string, init: RequestInit): Promise<Response>;
  close(): Promise<void>;
}

const TRIES = 3;
const segment = encodeURIComponent;

/** The one client of the command line; the same over the network and in process. Throws AppError as the server sent it. */
export function createClient(connection: Connection) {
  const send = async (method: string, path: string, body: unknown, signal?: AbortSignal): Promise<Response> => {
    const headers: Record<string, string> = { accept: 'application/json' };
    if (body !== undefined) headers['content-type'] = 'application/json';
    // With its key a creating request may be sent again: the server answers a repetition with the first result.
    if (method === 'POST') headers['idempotency-key'] = randomUUID();
    const init: RequestInit = { method, headers, ...(signal ? { signal } : {}) };
    if (body !== undefined) init.body = JSON.stringify(body);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await checked(await connection.request(path, init));
      } catch (error) {
        if (error instanceof AppError || error instanceof CommandError || signal?.aborted) throw error;
        if (attempt === TRIES) throw unreachable(connection.url, error);
      }
    }
  };
  const json = async <T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> => {
    const response = await send(method, path, body, signal);
    return (response.status === 204 ? null : await response.json()) as T;
  };
  /** What comes of a decision; that another one came first is an outcome, no error. */
  const decide = async (path: string, body: AnswerApproval): Promise<AnsweredApproval> => {
    try {
      return await json<AnsweredApproval>('POST', path, body);
    } catch (error) {
      if (error instanceof TooLate) return error.answered;
      throw error;
    }
  };
  const at = (world: string, rest = '') => `/api/v1/worlds/${segment(world)}${rest}`;
  const chatAt = (world: string, chat: string, rest = '') => at(world, `/chats/${segment(chat)}${rest}`);

  return {
    url: connection.url,
    isLocal: connection.isLocal ?? false,
    close: () => connection.close(),

    worlds: () => json<{ worlds: World[] }>('GET', '/api/v1/worlds'),
    world: (world: string) => json<WorldDetail>('GET', at(world)),
    createWorld: (settings: Partial<WorldSettings>) => json<World>('POST', '/api/v1/worlds', settings),
    deleteWorld: (world: string) => json<null>('DELETE', at(world)),

    agents: (world: string) => json<{ agents: WorldAgent[] }>('GET', at(world, '/agents')),
    agent: (world: string, agent: string) => json<WorldAgent>('GET', at(world, `/agents/${segment(agent)}`)),
    createAgent: (world: string, settings: Partial<AgentSettings>) =>
      json<WorldAgent>('POST', at(world, '/agents'), settings),
    deleteAgent: (world: string, agent: string) => json<null>('DELETE', at(world, `/agents/${segment(agent)}`)),

    chats: (world: string) => json<{ chats: Chat[] }>('GET', at(world, '/chats')),
    chat: (world: string, chat: string) => json<Chat>('GET', chatAt(world, chat)),
    createChat: (world: string, title?: string) => json<Chat>('POST', at(world, '/chats'), title ? { title } : {}),
    deleteChat: (world: string, chat: string) => json<null>('DELETE', chatAt(world, chat)),

    messages: (world: string, chat: string, query: { before?: number; after?: number; limit: number }) => {
      const search = Object.entries(query).map(([name, value]) => `${name}=${value}`);
      return json<MessagePage>('GET', chatAt(world, chat, `/messages?${search.join('&')}`));
    },
    turns: (world: string, chat: string) => json<{ turns: Turn[] }>('GET', chatAt(world, chat, '/turns')),
    post: (world: string, chat: string, content: string) =>
      json<Posted>('POST', chatAt(world, chat, '/messages'), { content }),
    stop: (world: string, chat: string) => json<{ stopped: number }>('POST', chatAt(world, chat, '/stop'), {}),
    continueChat: (world: string, chat: string) =>
      json<{ turns: Turn[] }>('POST', chatAt(world, chat, '/continue'), {}),

    /** Of all worlds where none is named; oldest first, at most 500. */
    approvals: (world: string | undefined, status?: Approval['status']) => {
      const query = status === undefined ? '' : `?status=${status}`;
      const path = world === undefined ? '/api/v1/approvals' : at(world, '/approvals');
      return json<{ approvals: Approval[] }>('GET', `${path}${query}`);
    },
    approval: (world: string, id: string) => json<Approval>('GET', at(world, `/approvals/${segment(id)}`)),
    answer: (world: string, id: string, answer: AnswerApproval) =>
      decide(at(world, `/approvals/${segment(id)}/answer`), answer),

    providers: () => json<{ providers: ProviderStatus[] }>('GET', '/api/v1/models'),
    testProvider: (provider: string) =>
      json<ProviderTest>('POST', `/api/v1/models/${segment(provider)}/test`, {}, AbortSignal.timeout(30_000)),

    /**
     * The world's events, stored and live. `after`: stored ones since that seq come first; without it only what
     * happens from now on. `opened` is called when the server has answered. Ends when the connection does.
     */
    async *events(
      world: string,
      options: { after?: number | undefined; opened?: () => void },
      signal: AbortSignal,
    ): AsyncGenerator<WorldEvent> {
      const headers: Record<string, string> = { accept: 'text/event-stream' };
      if (options.after !== undefined) headers['last-event-id'] = String(options.after);
      const path = at(world, '/events/stream');
      const response = await checked(await connection.request(path, { method: 'GET', headers, signal }));
      options.opened?.();
      if (!response.body) return;
      const frames = response.body
        .pipeThrough(new TextDecoderStream(), { signal })
        .pipeThrough(new EventSourceParserStream());
      for await (const frame of frames) {
        const event: unknown = JSON.parse(frame.data);
        if (event !== null && typeof event === 'object' && 'type' in event) yield event as WorldEvent;
      }
    },
  };
}
export type Client = ReturnType<typeof createClient>;

function unreachable(url: string, error: unknown): CommandError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return new CommandError(`cannot reach ${url}: ${cause instanceof Error ? cause.message : String(cause)}`);
}

/** The 409 of an approval that was decided before; the last state is in its body. */
class TooLate extends AppError {
  override readonly name = 'TooLate';
  readonly answered: AnsweredApproval;

  constructor(answered: AnsweredApproval) {
    super('conflict', answered.reason ?? 'it was decided already');
    this.answered = answered;
  }
}

async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  const text = await response.text();
  const late = jsonOf(text);
  if (response.status === 409 && late !== null && typeof late === 'object' && 'accepted' in late) {
    throw new TooLate(late as AnsweredApproval);
  }
  const body = parsed(text);
  if (body === null) throw new AppError('internal', `the server answered ${response.status} without an explanation`);
  const code: ErrorCode = body.error in ERROR_STATUS ? (body.error as ErrorCode) : 'internal';
  throw new AppError(code, body.message, body.details);
}

function parsed(text: string): { error: string; message: string; details?: Record<string, unknown> } | null {
  const body = jsonOf(text);
  if (body === null || typeof body !== 'object' || !('error' in body) || !('message' in body)) return null;
  return body as { error: string; message: string };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // a proxy's page, or nothing
  }
}
