import type {
  AgentSettings,
  Approval,
  Chat,
  Message,
  ProviderStatus,
  Role,
  Turn,
  World,
  WorldAgent,
  WorldSettings,
} from '../../core/protocol/entities.ts';
import type {
  AnswerApproval,
  AnsweredApproval,
  CreateAgent,
  MessagePage,
  Posted,
  ProviderTest,
  WorldDetail,
  WorldUsage,
} from '../../core/protocol/requests.ts';

/** An answer that is not a success, with the server's own words; `offline` and `nonsense` are the page's codes. */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;
  readonly details: unknown;
  constructor(code: string, message: string, status: number, details?: unknown) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.status = status;
    this.details = details;
  }
}

export interface Session {
  readonly role: Role;
  readonly name: string;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
interface CallOptions {
  body?: unknown;
  /** Makes the call safe to send again. */
  key?: string;
  signal?: AbortSignal;
  /** A 409 that says `accepted: false` is an answer, not a failure. */
  takesRefusal?: boolean;
}

const listeners = new Set<(error: ApiError) => void>();

/** Hears of every answer that says that the session is over. Returns how to stop. */
export function onUnauthorized(listener: (error: ApiError) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

async function call<T>(
  method: Method,
  path: string,
  { body, key, signal, takesRefusal }: CallOptions = {},
): Promise<T> {
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (key !== undefined) headers['Idempotency-Key'] = key;
  const init: RequestInit = { method, headers, credentials: 'same-origin' };
  if (body !== undefined) init.body = JSON.stringify(body);
  if (signal) init.signal = signal;
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    throw unreached(error);
  }
  if (response.status === 204) return undefined as T;
  const answer = await readJson(response);
  if (response.ok || (takesRefusal && response.status === 409 && isRefusal(answer))) return answer as T;
  const told = answer as { error?: unknown; message?: unknown; details?: unknown } | null;
  const error = new ApiError(
    typeof told?.error === 'string' ? told.error : 'nonsense',
    typeof told?.message === 'string' ? told.message : `The server answered ${response.status}`,
    response.status,
    told?.details,
  );
  if (error.status === 401) for (const listener of listeners) listener(error);
  throw error;
}

const isRefusal = (answer: unknown): boolean => typeof answer === 'object' && answer !== null && 'accepted' in answer;

/** What is thrown where no answer came; a call that was given up stays that. */
function unreached(error: unknown): unknown {
  if (error instanceof DOMException && error.name === 'AbortError') return error;
  return new ApiError('offline', 'The server cannot be reached', 0);
}

async function readJson(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    // A server that ends in the middle of its answer is away, and has said nothing.
    if (!(error instanceof SyntaxError)) throw unreached(error);
    throw new ApiError(
      'nonsense',
      `The server answered ${response.status} with something that is not JSON`,
      response.status,
    );
  }
}

const id = encodeURIComponent;
const worldPath = (world: string): string => `/api/v1/worlds/${id(world)}`;
const chatPath = (world: string, chat: string): string => `${worldPath(world)}/chats/${id(chat)}`;

/** A key for one thing that a person does, kept over retries. */
export const newKey = (): string => crypto.randomUUID();

/** The calls of the page. All throw ApiError. */
export const api = {
  openSession: (token: string) => call<Session>('POST', '/api/v1/session', { body: { token } }),
  session: () => call<Session>('GET', '/api/v1/session'),
  closeSession: () => call<void>('DELETE', '/api/v1/session'),

  worlds: async () => (await call<{ worlds: World[] }>('GET', '/api/v1/worlds')).worlds,
  createWorld: (body: Partial<WorldSettings>, key: string) => call<World>('POST', '/api/v1/worlds', { body, key }),
  world: (world: string, signal?: AbortSignal) => call<WorldDetail>('GET', worldPath(world), signal ? { signal } : {}),
  patchWorld: (world: string, body: Partial<WorldSettings>) => call<World>('PATCH', worldPath(world), { body }),
  deleteWorld: (world: string) => call<void>('DELETE', worldPath(world)),
  usage: (world: string) => call<WorldUsage>('GET', `${worldPath(world)}/usage`),

  createAgent: (world: string, body: Partial<CreateAgent>, key: string) =>
    call<WorldAgent>('POST', `${worldPath(world)}/agents`, { body, key }),
  patchAgent: (world: string, agent: string, body: Partial<AgentSettings>) =>
    call<WorldAgent>('PATCH', `${worldPath(world)}/agents/${id(agent)}`, { body }),
  deleteAgent: (world: string, agent: string) => call<void>('DELETE', `${worldPath(world)}/agents/${id(agent)}`),

  createChat: (world: string, key: string) => call<Chat>('POST', `${worldPath(world)}/chats`, { body: {}, key }),
  renameChat: (world: string, chat: string, title: string) =>
    call<Chat>('PATCH', chatPath(world, chat), { body: { title } }),
  deleteChat: (world: string, chat: string) => call<void>('DELETE', chatPath(world, chat)),

  messages: (world: string, chat: string, page: { before?: number; limit: number }) =>
    call<MessagePage>(
      'GET',
      `${chatPath(world, chat)}/messages?limit=${page.limit}${page.before === undefined ? '' : `&before=${page.before}`}`,
    ),
  turns: async (world: string, chat: string) =>
    (await call<{ turns: Turn[] }>('GET', `${chatPath(world, chat)}/turns`)).turns,
  post: (world: string, chat: string, content: string, key: string) =>
    call<Posted>('POST', `${chatPath(world, chat)}/messages`, { body: { content }, key }),
  forward: (world: string, chat: string, message: Message['id'], agentId: string) =>
    call<Turn>('POST', `${chatPath(world, chat)}/messages/${id(message)}/forward`, { body: { agentId } }),
  stop: (world: string, chat: string) =>
    call<{ stopped: number }>('POST', `${chatPath(world, chat)}/stop`, { body: {} }),
  pause: (world: string, chat: string) => call<Chat>('POST', `${chatPath(world, chat)}/pause`, { body: {} }),
  resume: (world: string, chat: string) => call<Chat>('POST', `${chatPath(world, chat)}/resume`, { body: {} }),
  continueChat: (world: string, chat: string) =>
    call<{ turns: Turn[] }>('POST', `${chatPath(world, chat)}/continue`, { body: {} }),

  pendingApprovals: async (world: string) =>
    (await call<{ approvals: Approval[] }>('GET', `${worldPath(world)}/approvals?status=pending`)).approvals,
  inbox: async () => (await call<{ approvals: Approval[] }>('GET', '/api/v1/approvals')).approvals,
  /** `accepted` is false where somebody decided before; `approval` is then what they decided. */
  answerApproval: (world: string, approval: string, body: AnswerApproval) =>
    call<AnsweredApproval>('POST', `${worldPath(world)}/approvals/${id(approval)}/answer`, {
      body,
      takesRefusal: true,
    }),

  providers: async () => (await call<{ providers: ProviderStatus[] }>('GET', '/api/v1/models')).providers,
  setProvider: (provider: string, body: { apiKey?: string | null; baseUrl?: string | null }) =>
    call<ProviderStatus>('PUT', `/api/v1/models/${id(provider)}`, { body }),
  testProvider: (provider: string, model: string) =>
    call<ProviderTest>('POST', `/api/v1/models/${id(provider)}/test`, { body: model === '' ? {} : { model } }),
};
