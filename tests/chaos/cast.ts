import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Chat, World } from '../../core/protocol/entities.ts';
import { must } from './good-client.ts';
import type { Site } from './site.ts';

type Rule = Record<string, unknown>;

const LONG = 'A long answer that takes its time, so that something can happen while it is on its way. '.repeat(2);

/** What each agent does: hand over, fan out, answer slowly, say nothing, fail. */
const SCRIPTS: Record<string, Rule[]> = {
  lead: [
    { when: { contains: 'chain' }, say: '@Relay take this further', delayMs: 5, chunkSize: 8 },
    { when: { contains: 'fan' }, say: '@Relay and @Slow\nplease finish this', delayMs: 5, chunkSize: 8 },
    {
      when: { contains: 'everybody' },
      think: 'What do I think of it?',
      say: 'Lead was here',
      delayMs: 10,
      chunkSize: 4,
    },
  ],
  relay: [
    { when: { contains: 'take this' }, say: '@Slow finish it, please', delayMs: 5, chunkSize: 8 },
    { when: { contains: 'finish' }, say: 'Relay is done with {{message}}', delayMs: 10, chunkSize: 10 },
    { when: { contains: 'everybody' }, say: 'Relay was here', delayMs: 5, chunkSize: 4 },
  ],
  slow: [{ say: LONG, delayMs: 20, chunkSize: 12 }],
  quiet: [{ when: { contains: 'break' }, think: 'No.', fail: 400, delayMs: 20 }],
};

/** What people say; each wakes other agents in another way. */
export const TOPICS = [
  '@Lead chain',
  '@Lead fan',
  '@Slow',
  '@Quiet break',
  '@Quiet',
  'everybody',
  '@Relay finish',
] as const;

export interface Place {
  world: string;
  chats: string[];
}

export function writeScripts(data: string): void {
  const folder = join(data, 'scripts');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const [name, rules] of Object.entries(SCRIPTS)) {
    writeFileSync(join(folder, `${name}.yaml`), JSON.stringify(rules));
  }
}

/** A world with all agents and some chats. Every call has a key, so that it may be made while servers die. */
export async function furnish(site: Site, name: string, chats: number, settings: object = {}): Promise<Place> {
  const world = await must<World>(site, 'POST', '/api/v1/worlds', { name, ...settings }, { key: `${name}:world` });
  for (const agent of Object.keys(SCRIPTS)) {
    const body = { name: agent[0]?.toUpperCase() + agent.slice(1), provider: 'script', model: agent, autoReply: false };
    await must(site, 'POST', `/api/v1/worlds/${world.id}/agents`, body, { key: `${name}:${agent}` });
  }
  const place: Place = { world: world.id, chats: [] };
  for (let n = 0; n < chats; n++) {
    const chat = await must<Chat>(site, 'POST', `/api/v1/worlds/${world.id}/chats`, {}, { key: `${name}:chat-${n}` });
    place.chats.push(chat.id);
  }
  return place;
}
