import type { Actor, Clock, Idempotency, Ids, Store } from '../ports.ts';
import type { AgentSettings, Chat, World, WorldAgent, WorldSettings } from '../protocol/entities.ts';
import { AppError } from '../protocol/errors.ts';
import type { StoredEvent } from '../protocol/events.ts';
import { type AgentId, type ChatId, foldName, idFromName, RESERVED_IDS, type WorldId } from '../protocol/ids.ts';
import type { CreateAgent, WorldDetail } from '../protocol/requests.ts';
import { requireRole } from './access.ts';
import type { Engine } from './engine.ts';
import type { Rosters } from './rosters.ts';

export interface PlacesDeps {
  store: Store;
  rosters: Rosters;
  engine: Engine;
  clock: Clock;
  ids: Ids;
  publish(events: readonly StoredEvent[]): void;
}

/** Worlds, their agents and their chats: who may change what, and which names are refused. */
export function openPlaces({ store, rosters, engine, ids, publish }: PlacesDeps) {
  async function needWorld(world: string): Promise<World> {
    const found = await store.getWorld(world);
    if (!found) throw new AppError('not_found', `there is no world ${JSON.stringify(world)}`);
    return found;
  }
  async function needChat(world: string, chat: string): Promise<Chat> {
    const found = await store.getChat(world, chat);
    if (!found)
      throw new AppError('not_found', `there is no chat ${JSON.stringify(chat)} in the world ${JSON.stringify(world)}`);
    return found;
  }
  async function needAgents(world: string): Promise<WorldAgent[]> {
    const roster = await store.roster(world);
    if (!roster) throw new AppError('not_found', `there is no world ${JSON.stringify(world)}`);
    return [...roster.agents];
  }
  /** Ends every turn of a chat; what their last words queued is dropped before it can start. */
  async function silence(world: string, chat: string): Promise<void> {
    publish((await store.dropQueued(world, chat)).events);
    await engine.abort(chat, async () => publish((await store.dropQueued(world, chat)).events));
  }
  async function checkMainAgent(world: string, mainAgent: string | null | undefined): Promise<void> {
    if (mainAgent === null || mainAgent === undefined) return;
    const roster = await store.roster(world);
    if (roster && !roster.agents.some((agent) => agent.id === mainAgent)) {
      throw new AppError('invalid', `mainAgent: there is no agent ${JSON.stringify(mainAgent)} in this world`);
    }
  }

  return {
    async listWorlds(_actor: Actor): Promise<World[]> {
      return store.listWorlds();
    },
    async createWorld(actor: Actor, input: WorldSettings, idem?: Idempotency): Promise<World> {
      requireRole(actor, 'owner');
      if (input.mainAgent !== null)
        throw new AppError('invalid', 'mainAgent: a new world has no agents yet; set it afterwards');
      const id = checkedId(input.name) as WorldId;
      return (await store.createWorld(id, input, idem)).value;
    },
    async getWorld(_actor: Actor, world: string): Promise<WorldDetail> {
      const roster = await store.roster(world);
      if (!roster) throw new AppError('not_found', `there is no world ${JSON.stringify(world)}`);
      return { ...roster.world, agents: [...roster.agents], chats: await store.listChats(world) };
    },
    async patchWorld(actor: Actor, world: string, patch: Partial<WorldSettings>): Promise<World> {
      requireRole(actor, 'owner');
      await needWorld(world);
      await checkMainAgent(world, patch.mainAgent);
      const { value, events } = await store.patchWorld(world, patch);
      rosters.drop(world);
      publish(events);
      return value;
    },
    async deleteWorld(actor: Actor, world: string): Promise<void> {
      requireRole(actor, 'owner');
      await needWorld(world);
      const chats = await store.listChats(world);
      for (const chat of chats) await silence(world, chat.id);
      const { events } = await store.deleteWorld(world);
      rosters.drop(world);
      publish(events);
      // A message that came in between has woken agents that nobody will hear.
      for (const chat of chats) await engine.abort(chat.id);
    },

    async listAgents(_actor: Actor, world: string): Promise<WorldAgent[]> {
      return needAgents(world);
    },
    async getAgent(_actor: Actor, world: string, agent: string): Promise<WorldAgent> {
      const found = (await needAgents(world)).find((one) => one.id === agent);
      if (!found)
        throw new AppError(
          'not_found',
          `there is no agent ${JSON.stringify(agent)} in the world ${JSON.stringify(world)}`,
        );
      return found;
    },
    async createAgent(actor: Actor, world: string, input: CreateAgent, idem?: Idempotency): Promise<WorldAgent> {
      requireRole(actor, 'owner');
      const { id: chosen, ...settings } = input;
      const id = checkedId(chosen ?? settings.name);
      if (chosen !== undefined && chosen !== id) {
        throw new AppError(
          'invalid_id',
          `id: ${JSON.stringify(chosen)} is not in the form of an id; ${JSON.stringify(id)} would be`,
        );
      }
      checkReserved(settings.displayName);
      const { value, events } = await store.createAgent(
        world,
        { id: id as AgentId, fold: foldName(id), source: 'world', settings },
        idem,
      );
      rosters.drop(world);
      publish(events);
      return value;
    },
    async patchAgent(actor: Actor, world: string, agent: string, patch: Partial<AgentSettings>): Promise<WorldAgent> {
      requireRole(actor, 'owner');
      if (patch.name !== undefined) {
        const fold = foldName(checkedId(patch.name));
        const other = (await store.roster(world))?.agents.find((one) => one.id !== agent && foldName(one.id) === fold);
        if (other)
          throw new AppError(
            'agent_exists',
            `the name ${JSON.stringify(patch.name)} gives the id of the agent ${other.id}; choose another name`,
          );
      }
      checkReserved(patch.displayName);
      const { value, events } = await store.patchAgent(world, agent, patch);
      rosters.drop(world);
      publish(events);
      return value;
    },
    async removeAgent(actor: Actor, world: string, agent: string): Promise<void> {
      requireRole(actor, 'owner');
      const { events } = await store.removeAgent(world, agent);
      rosters.drop(world);
      publish(events);
    },

    async listChats(_actor: Actor, world: string): Promise<Chat[]> {
      await needWorld(world);
      return store.listChats(world);
    },
    async createChat(
      actor: Actor,
      world: string,
      input: { title?: string | undefined },
      idem?: Idempotency,
    ): Promise<Chat> {
      requireRole(actor, 'member');
      const { value, events } = await store.createChat(
        world,
        { id: ids.make('c') as ChatId, title: input.title ?? '' },
        idem,
      );
      publish(events);
      return value;
    },
    async getChat(_actor: Actor, world: string, chat: string): Promise<Chat> {
      return needChat(world, chat);
    },
    async patchChat(actor: Actor, world: string, chat: string, patch: { title?: string | undefined }): Promise<Chat> {
      requireRole(actor, 'member');
      const { value, events } = await store.patchChat(
        world,
        chat,
        patch.title === undefined ? {} : { title: patch.title },
      );
      publish(events);
      return value;
    },
    async deleteChat(actor: Actor, world: string, chat: string): Promise<void> {
      requireRole(actor, 'owner');
      await needChat(world, chat);
      publish((await store.dropQueued(world, chat)).events);
      await engine.abort(chat, async () => publish((await store.deleteChat(world, chat)).events));
    },
    needChat,
    silence,
  };
}

/** The id that a name gives. Throws `invalid_id` where nothing is left of it, `reserved_id` for a word of the grammar. */
function checkedId(name: string): string {
  const id = idFromName(name);
  if (id === '')
    throw new AppError('invalid_id', `the name ${JSON.stringify(name)} has no letter or digit, so that it gives no id`);
  if (id.length > 128)
    throw new AppError('invalid_id', 'the name gives an id of more than 128 characters; choose a shorter one');
  if (RESERVED_IDS.has(id))
    throw new AppError('reserved_id', `the id ${JSON.stringify(id)} is reserved; choose another name`);
  return id;
}

function checkReserved(displayName: string | null | undefined): void {
  if (displayName && RESERVED_IDS.has(foldName(displayName))) {
    throw new AppError('reserved_id', `displayName: ${JSON.stringify(displayName)} is a reserved word; choose another`);
  }
}
