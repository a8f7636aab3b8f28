import { setTimeout as pause } from 'node:timers/promises';
import type { Posted } from '../../core/protocol/requests.ts';
import { furnish, type Place, TOPICS } from './cast.ts';
import { call, must } from './good-client.ts';
import type { Random } from './random.ts';
import type { Site } from './site.ts';

/** A message that the server has acknowledged. */
export interface Acknowledged {
  world: string;
  chat: string;
  key: string;
  content: string;
  posted: Posted;
}

export interface Load {
  readonly acknowledged: Acknowledged[];
  /** Worlds that were made while servers died. */
  readonly made: Place[];
  readonly faults: string[];
  /** Resolves with the next acknowledged message, at the moment when its status has come. */
  nextAck(): Promise<void>;
  /** Ends when every message that was begun is acknowledged. */
  stop(): Promise<void>;
}

export interface LoadOptions {
  writers: number;
  /** Also makes worlds, and stops, pauses and resumes chats. */
  wild: boolean;
  maxMessages: number;
}

const MAX_MADE = 4;

/** People who talk in all the places at once, one message after the other each. */
export function startLoad(site: Site, places: readonly Place[], random: Random, options: LoadOptions): Load {
  const acknowledged: Acknowledged[] = [];
  const made: Place[] = [];
  const faults: string[] = [];
  let waiting: (() => void)[] = [];
  let stopped = false;
  let begun = 0;

  const onHead = (status: number) => {
    if (status !== 201) return;
    const resolvers = waiting;
    waiting = [];
    for (const resolve of resolvers) resolve();
  };

  async function say(own: Random, place: Place, key: string): Promise<void> {
    const chat = own.pick(place.chats);
    const content = `${own.pick(TOPICS)} (${key})`;
    // Waiting for the chat keeps the load within what the agents can answer.
    const query = own.chance(0.7) ? '?wait=idle&timeoutMs=3000' : '';
    const path = `/api/v1/worlds/${place.world}/chats/${chat}/messages${query}`;
    const answer = await call<Posted>(site, 'POST', path, { content }, { key, onHead });
    if (answer.status !== 201) {
      faults.push(`the post ${key} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
      return;
    }
    const { message, routing, turns } = answer.body;
    acknowledged.push({ world: place.world, chat, key, content, posted: { message, routing, turns } });
  }

  async function meddle(own: Random, place: Place, key: string): Promise<void> {
    const chat = `/api/v1/worlds/${place.world}/chats/${own.pick(place.chats)}`;
    if (own.chance(0.3) && made.length < MAX_MADE) {
      made.push(await furnish(site, `made ${key}`, 1));
    } else if (own.chance(0.5)) {
      await must(site, 'POST', `${chat}/stop`);
    } else {
      await must(site, 'POST', `${chat}/pause`);
      await must(site, 'POST', `${chat}/resume`);
    }
  }

  async function writer(name: string): Promise<void> {
    const own = random.fork(name);
    for (let n = 0; !stopped && begun < options.maxMessages; n++) {
      begun += 1;
      const place = own.pick([...places, ...made]);
      if (options.wild && own.chance(0.06)) await meddle(own, place, `${name}-${n}`);
      else await say(own, place, `${name}-${n}`);
      await pause(own.int(0, 60)); // the pace of a person, not a wait for anything
    }
  }

  const writers = Array.from({ length: options.writers }, (_, n) =>
    writer(`w${n}`).catch((error: unknown) => {
      faults.push(`writer ${n}: ${String(error)}`);
    }),
  );
  return {
    acknowledged,
    made,
    faults,
    nextAck: () => new Promise((resolve) => waiting.push(resolve)),
    async stop() {
      stopped = true;
      await Promise.all(writers);
    },
  };
}
