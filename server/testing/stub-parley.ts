import type { Actor, Parley } from '../../core/parley.ts';
import type { Idempotency } from '../../core/ports.ts';
import { AppError } from '../../core/protocol/errors.ts';
import type { Posted } from '../../core/protocol/requests.ts';
import { type MemoryLog, silentLog } from './memory-log.ts';

export interface StubParley extends Parley {
  /** Tokens that are good now. */
  people: Map<string, Actor>;
  posts: { actor: Actor; chat: string; content: string; idem: Idempotency | undefined }[];
}

/** Just enough of a core for the sockets and streams: the log, who is who, and posts that are written down. */
export function stubParley(log: MemoryLog): StubParley {
  const absent = (): never => {
    throw new AppError('not_found', 'not part of this stub');
  };
  const people = new Map<string, Actor>([
    ['owner-token', { tokenId: 'k1', role: 'owner', name: 'Ada' }],
    ['viewer-token', { tokenId: 'k2', role: 'viewer', name: 'Vic' }],
  ]);
  const posts: StubParley['posts'] = [];
  const stub: Partial<Record<keyof StubParley, unknown>> = {
    version: '0.0.0',
    log: silentLog,
    bus: log.bus,
    events: log.events,
    people,
    posts,
    liveText: (_world: string, chat?: string) => log.live.filter((l) => chat === undefined || l.chat === chat),
    authenticate: async (token: string) => people.get(token) ?? null,
    getChat: async (_actor: Actor, _world: string, chat: string) => (chat === 'none' ? absent() : { id: chat }),
    async post(actor: Actor, _world: string, chat: string, content: string, idem?: Idempotency): Promise<Posted> {
      if (actor.role === 'viewer') throw new AppError('forbidden', 'viewers only read');
      posts.push({ actor, chat, content, idem });
      return { message: null, routing: { woke: [], ignored: [] }, turns: [] } as Pick<
        Posted,
        'routing' | 'turns'
      > as Posted;
    },
    stop: async () => ({ stopped: 2 }),
    async removeToken(_actor: Actor, id: string) {
      for (const [token, actor] of people) if (actor.tokenId === id) people.delete(token);
    },
    close: async () => {},
  };
  return new Proxy(stub, { get: (target, name) => Reflect.get(target, name) ?? absent }) as unknown as StubParley;
}
