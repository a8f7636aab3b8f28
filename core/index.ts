/** Builds a Parley out of its parts: the way in for the server, the command line and embedding programs. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openAccess, ownerToken } from './access.ts';
import { memoryBus } from './bus/memory.ts';
import type { Config } from './config.ts';
import { createDemoWorld } from './demo.ts';
import { randomIds, systemClock } from './machine.ts';
import { openPrices } from './models/prices.ts';
import { openModels } from './models/registry.ts';
import { readOwnerSettings } from './owner-settings.ts';
import type { Parley } from './parley.ts';
import { packageRoot } from './paths.ts';
import type { Clock, Ids, Log, Models, Prices, Tool } from './ports.ts';
import { AppError } from './protocol/errors.ts';
import type { StoredEvent } from './protocol/events.ts';
import type { ChatId } from './protocol/ids.ts';
import { argsHash } from './safety/args-hash.ts';
import { createSecrets, type Secrets } from './safety/redact.ts';
import { readOwner, writeOwner } from './store/sqlite/database.ts';
import { openSqliteStore, type SqliteStore } from './store/sqlite/index.ts';
import { askUserTool } from './tools/ask-user.ts';
import { createAgentTool } from './tools/create-agent.ts';
import { requireRole } from './world/access.ts';
import { openBranches } from './world/branches.ts';
import { MAX_CRASHES } from './world/chat-runner.ts';
import { DEFAULT_WINDOW, type WindowLimits } from './world/context.ts';
import { openDecisions } from './world/decisions.ts';
import { DEFAULT_PROCESS_TURNS, startEngine } from './world/engine.ts';
import { openExpiry } from './world/expiry.ts';
import { DEFAULT_JOIN_MS } from './world/live.ts';
import { openMeters } from './world/meter.ts';
import { DEFAULT_RETRY, type RetryPolicy } from './world/model-call.ts';
import { openPlaces } from './world/places.ts';
import { openRosters } from './world/rosters.ts';
import { openTalk } from './world/talk.ts';

export { OWNER } from './access.ts';
export type { Actor, LiveText, Parley } from './parley.ts';

export interface ParleyOptions {
  config: Config;
  log: Log;
  version: string;
  /** What logs must never show is added here. */
  secrets?: Secrets;
  /** For tests and embedding: a clock, ids, models and bounds of one's own. */
  clock?: Clock;
  ids?: Ids;
  models?: Models;
  prices?: Prices;
  retry?: RetryPolicy;
  window?: WindowLimits;
  joinMs?: number;
  processTurns?: number;
  /** More tools for every agent. */
  tools?: readonly Tool[];
  /** False leaves a new database empty. */
  demo?: boolean;
}

export interface OpenParley extends Parley {
  readonly ownerToken: string;
  readonly tokenFile: string;
  /** For the speed gates. */
  readonly store: SqliteStore;
}

/**
 * Opens the data directory, alone, and starts the engine: interrupted turns go on.
 * Throws AppError `busy` (another server, named by its process id) or `invalid` (a directory, database or setting
 * that cannot be used; nothing of it is touched).
 */
export async function openParley(options: ParleyOptions): Promise<OpenParley> {
  const { config, log, version } = options;
  const clock = options.clock ?? systemClock;
  const ids = options.ids ?? randomIds();
  const secrets = options.secrets ?? createSecrets();
  makeDataDir(config.dataDir);
  const owner = readOwnerSettings(config.dataDir);
  const root = packageRoot();
  const store = await openStore(config, root, clock, ids);
  try {
    writeOwner(config.dataDir, process.pid);
    const tokenFile = join(config.dataDir, 'token');
    const token = config.token ?? ownerToken(tokenFile);
    secrets.add(token);
    const registry = await openModels({
      env: config.providerEnv,
      dataDir: config.dataDir,
      demoDir: join(root, 'agents', 'demo'),
      clock,
      log,
      secrets,
    });
    if (store.isNew) {
      if (options.demo !== false) await createDemoWorld(store, ids.make('c') as ChatId);
      await store.settle();
    }

    const bus = memoryBus();
    const expiry = openExpiry({ store, clock, log });
    const publish = (events: readonly StoredEvent[]) => {
      for (const event of events) {
        expiry.notice(event);
        bus.publish(event);
      }
    };
    const rosters = openRosters(store);
    const prices = options.prices ?? openPrices(owner.prices);
    const recovered = await store.recover(MAX_CRASHES);
    if (recovered.value.requeued + recovered.value.failed > 0) log.info(recovered.value, 'interrupted turns recovered');
    const models = options.models ?? registry;
    const tools: readonly Tool[] = [
      createAgentTool({
        store,
        look: async (world) => {
          const roster = await store.roster(world);
          if (!roster) throw new AppError('not_found', `there is no world ${JSON.stringify(world)}`);
          return roster;
        },
        defaults: () => models.defaults(),
        created: (world, events) => {
          rosters.drop(world);
          publish(events);
        },
      }),
      askUserTool(),
      ...(options.tools ?? []),
    ];
    const engine = startEngine({
      store,
      bus,
      clock,
      ids,
      log,
      rosters,
      publish,
      models,
      meters: openMeters({ store, rosters, prices }),
      tools,
      hashArgs: argsHash,
      retry: options.retry ?? DEFAULT_RETRY,
      window: options.window ?? DEFAULT_WINDOW,
      joinMs: options.joinMs ?? DEFAULT_JOIN_MS,
      maxTokens: config.maxTokens,
      worker: ids.make('w'),
      processTurns: options.processTurns ?? DEFAULT_PROCESS_TURNS,
    });
    const { needChat, silence, ...places } = openPlaces({ store, rosters, engine, clock, ids, publish });
    const talk = openTalk({ store, rosters, engine, bus, clock, ids, publish, needChat, silence });
    const branches = openBranches({
      ...{ store, rosters, engine, clock, ids, publish, needChat, silence },
      rename: places.patchChat,
    });
    const decisions = openDecisions({ store, engine, clock, ids, expiry, tools, publish });
    expiry.start({ publish, wake: (chat) => engine.wake(chat) });
    const access = openAccess(store, token, ids);
    let closing: Promise<void> | null = null;

    return {
      version,
      log,
      bus,
      store,
      events: store,
      ownerToken: token,
      tokenFile,
      ...places,
      ...talk,
      ...branches,
      ...decisions,
      ...access,
      async usage(_actor, world) {
        await places.listChats(_actor, world);
        return store.usage(world);
      },
      async search(_actor, world, query, limit) {
        await places.listChats(_actor, world);
        return store.search(world, query, limit);
      },
      liveText: (world, chat) => engine.liveText(world, chat),
      listProviders: () => registry.listProviders(),
      async setProvider(actor, provider, input) {
        requireRole(actor, 'owner');
        return registry.setProvider(provider, input);
      },
      async testProvider(actor, provider, model, signal) {
        requireRole(actor, 'owner');
        return registry.testProvider(provider, model, signal);
      },
      close() {
        expiry.stop();
        closing ??= engine.close().finally(() => store.close());
        return closing;
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new AppError('invalid', `the data directory ${dataDir} cannot be made: ${why}`, undefined, { cause: error });
  }
}

async function openStore(config: Config, root: string, clock: Clock, ids: Ids): Promise<SqliteStore> {
  try {
    return await openSqliteStore({
      file: config.databasePath,
      migrations: join(root, 'drizzle', 'sqlite'),
      clock,
      ids,
    });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'busy') throw error;
    const pid = existsSync(config.dataDir) ? readOwner(config.dataDir) : null;
    const who = pid === null ? 'another Parley server' : `another Parley server (process ${pid})`;
    throw new AppError(
      'busy',
      `the data directory ${config.dataDir} is in use by ${who}; stop it, or give --data another directory`,
      undefined,
      { cause: error },
    );
  }
}
