import { isDeepStrictEqual } from 'node:util';
import type { Chat, Message, Turn, Usage } from '../../core/protocol/entities.ts';
import { EMPTY_USAGE } from '../../core/protocol/entities.ts';
import type { StoredEvent } from '../../core/protocol/events.ts';
import type { MessagePage, Posted, WorldDetail, WorldUsage } from '../../core/protocol/requests.ts';
import type { Follower } from './follower.ts';
import { call, must } from './good-client.ts';
import type { Acknowledged } from './load.ts';
import type { Random } from './random.ts';
import { type Site, within } from './site.ts';
import { MAX_ATTEMPTS, TURN_ENDS, TurnStory } from './turn-story.ts';

const PAGE = 500;
const REPLAYED = 25;

export async function readLog(site: Site, world: string): Promise<StoredEvent[]> {
  const log: StoredEvent[] = [];
  for (;;) {
    const path = `/api/v1/worlds/${world}/events?after=${log.at(-1)?.seq ?? 0}&limit=${PAGE}`;
    const { events } = await must<{ events: StoredEvent[] }>(site, 'GET', path);
    log.push(...events);
    if (events.length < PAGE) return log;
  }
}

async function readMessages(site: Site, world: string, chat: string): Promise<Message[]> {
  const found: Message[] = [];
  for (;;) {
    const path = `/api/v1/worlds/${world}/chats/${chat}/messages?after=${found.at(-1)?.seq ?? 0}&limit=${PAGE}`;
    const { messages } = await must<MessagePage>(site, 'GET', path);
    found.push(...messages);
    if (messages.length < PAGE) return found;
  }
}

/** What the log tells of a world: its messages by chat and the story of each turn. */
function retell(log: readonly StoredEvent[], faults: string[]) {
  const messages = new Map<string, Message[]>();
  const turns = new Map<string, TurnStory>();
  const ids = new Set<string>();
  for (const [index, event] of log.entries()) {
    if (event.seq !== index + 1) faults.push(`event ${index + 1} of the log has the seq ${event.seq}`);
    if (event.type === 'message.created') {
      const { message } = event.data;
      const room = messages.get(message.chatId) ?? [];
      messages.set(message.chatId, room);
      room.push(message);
      if (message.seq !== room.length)
        faults.push(`message ${room.length} of ${message.chatId} has seq ${message.seq}`);
      if (message.parentId !== (room.at(-2)?.id ?? null)) faults.push(`message ${message.id} has another parent`);
      if (ids.has(message.id)) faults.push(`message ${message.id} is there twice`);
      ids.add(message.id);
      if (message.turnId !== undefined) turns.get(message.turnId)?.replied(message);
    } else if ('turn' in event.data) {
      const { turn } = event.data;
      const story = turns.get(turn.id) ?? new TurnStory(turn.id);
      turns.set(turn.id, story);
      story.heard(event.type, turn);
    }
  }
  for (const story of turns.values()) faults.push(...story.end());
  return { messages, turns };
}

/** Everything that must hold of a world at rest, whatever happened to its servers. Answers what does not. */
export async function checkWorld(
  site: Site,
  world: string,
  acknowledged: readonly Acknowledged[],
  followers: readonly Follower[],
): Promise<string[]> {
  const faults: string[] = [];
  const log = await readLog(site, world);
  const { messages, turns } = retell(log, faults);
  const detail = await must<WorldDetail>(site, 'GET', `/api/v1/worlds/${world}`);
  for (const chat of detail.chats) faults.push(...(await checkChat(site, chat, messages.get(chat.id) ?? [], turns)));

  const humans = [...messages.values()].flat().filter((message) => message.sender.kind === 'human');
  if (humans.length !== acknowledged.length) {
    faults.push(`${acknowledged.length} messages were acknowledged, ${humans.length} are in the log`);
  }
  const byId = new Map(humans.map((message) => [message.id, message]));
  for (const { key, content, posted } of acknowledged) {
    const stored = byId.get(posted.message.id);
    if (!isDeepStrictEqual(stored, posted.message))
      faults.push(`the acknowledged message ${key} is not as it was told`);
    if (stored && stored.content !== content) faults.push(`the message ${key} has another text`);
    for (const turn of posted.turns) if (!turns.has(turn.id)) faults.push(`${key} promised the turn ${turn.id}`);
  }
  for (const follower of followers) faults.push(...(await checkFollower(follower, log)));
  faults.push(...checkUsage(await must<WorldUsage>(site, 'GET', `/api/v1/worlds/${world}/usage`), turns));
  return faults.map((fault) => `${world}: ${fault}`);
}

async function checkChat(
  site: Site,
  chat: Chat,
  logged: readonly Message[],
  stories: ReadonlyMap<string, TurnStory>,
): Promise<string[]> {
  const faults: string[] = [];
  const rows = await readMessages(site, chat.worldId, chat.id);
  if (!isDeepStrictEqual(rows, logged)) faults.push(`the messages of ${chat.id} are not those of the log`);
  if (chat.lastSeq !== logged.length) faults.push(`${chat.id} has lastSeq ${chat.lastSeq} of ${logged.length}`);
  if (chat.head !== (logged.at(-1)?.id ?? null)) faults.push(`the head of ${chat.id} is not its last message`);
  const path = `/api/v1/worlds/${chat.worldId}/chats/${chat.id}/turns`;
  const { turns } = await must<{ turns: Turn[] }>(site, 'GET', path);
  for (const turn of turns) {
    if (turn.attempt > MAX_ATTEMPTS + site.terminations())
      faults.push(`turn ${turn.id} was tried ${turn.attempt} times`);
    if (!isDeepStrictEqual(stories.get(turn.id)?.last, turn)) faults.push(`turn ${turn.id} is not as the log tells`);
  }
  return faults;
}

async function checkFollower(follower: Follower, log: readonly StoredEvent[]): Promise<string[]> {
  const expected = log.filter(
    (event) => follower.chat === undefined || !('chat' in event) || event.chat === follower.chat,
  );
  await follower.reached(expected.at(-1)?.seq ?? 0);
  if (isDeepStrictEqual(follower.events, expected)) return [];
  const at = expected.findIndex((event, index) => !isDeepStrictEqual(event, follower.events[index]));
  const heard = JSON.stringify(follower.events[at === -1 ? expected.length : at]);
  return [`${follower.name} heard ${heard} where the log has ${JSON.stringify(expected[at])}`];
}

function checkUsage(told: WorldUsage, turns: ReadonlyMap<string, TurnStory>): string[] {
  const faults: string[] = [];
  const add = (a: Usage, b: Usage): Usage => ({
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    usd: a.usd + b.usd,
    calls: a.calls + b.calls,
    ...(a.estimated || b.estimated ? { estimated: true } : {}),
  });
  const sums = { total: EMPTY_USAGE, agents: new Map<string, Usage>(), chats: new Map<string, Usage>() };
  for (const { last, reply } of turns.values()) {
    if (!last) continue;
    sums.total = add(sums.total, last.usage);
    sums.agents.set(last.agentId, add(sums.agents.get(last.agentId) ?? EMPTY_USAGE, last.usage));
    sums.chats.set(last.chatId, add(sums.chats.get(last.chatId) ?? EMPTY_USAGE, last.usage));
    if (reply && !isDeepStrictEqual(reply.usage, last.usage)) faults.push(`reply and turn ${last.id} differ in usage`);
  }
  const expected = {
    total: sums.total,
    agents: Object.fromEntries(sums.agents),
    chats: Object.fromEntries(sums.chats),
  };
  if (!isDeepStrictEqual(told, expected)) faults.push('the usage is not the sum of the turns');
  return faults;
}

/** Asks again with keys that were used: the same answers, and nothing new. */
export async function checkReplays(site: Site, acknowledged: readonly Acknowledged[], random: Random) {
  const faults: string[] = [];
  const left = [...acknowledged];
  for (let n = 0; n < REPLAYED && left.length > 0; n++) {
    const [one] = left.splice(random.int(0, left.length - 1), 1);
    if (!one) break;
    const path = `/api/v1/worlds/${one.world}/chats/${one.chat}/messages`;
    const again = await call<Posted>(site, 'POST', path, { content: one.content }, { key: one.key });
    if (again.status !== 201 || !isDeepStrictEqual(again.body, one.posted)) {
      faults.push(`the key ${one.key} was answered otherwise: ${again.status} ${JSON.stringify(again.body)}`);
    }
    const other = await call(site, 'POST', path, { content: `${one.content}!` }, { key: one.key });
    if (other.status !== 409) faults.push(`the key ${one.key} was taken with another body: ${other.status}`);
  }
  return faults;
}

/** Resolves when every turn of the follower's world has ended. Throws where a chat hangs. */
export async function settled(site: Site, follower: Follower): Promise<void> {
  for (;;) {
    const ended = follower.next((event) => event.type in TURN_ENDS);
    const { turns } = retell(await readLog(site, follower.world), []);
    const open = [...turns.values()].filter((story) => !story.hasEnded());
    if (open.length === 0) return;
    const names = open.map(({ id, last }) => `${id} of ${last?.agentId} (${last?.state})`).join(', ');
    await within(ended, `${follower.world} hangs: no end of ${names}`);
  }
}
