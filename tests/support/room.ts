import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../core/config.ts';
import { type OpenParley, OWNER, openParley, type ParleyOptions } from '../../core/index.ts';
import type { Log, Model, ModelPart, ModelRequest, Models } from '../../core/ports.ts';
import { AgentSettings, type Message, WorldSettings } from '../../core/protocol/entities.ts';
import { isStored, type StoredEvent, type WorldEvent } from '../../core/protocol/events.ts';

/** A log that keeps what it is told. */
export function memoryLog(): Log & { entries: { level: string; message: string; fields: Record<string, unknown> }[] } {
  const entries: { level: string; message: string; fields: Record<string, unknown> }[] = [];
  const at = (level: string) => (fields: Record<string, unknown>, message: string) => {
    entries.push({ level, message, fields });
  };
  return { entries, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

export type Answer = (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelPart> | string;

/** A provider whose every model answers by a function. A text answer comes in chunks of 8 characters. */
export function answering(answer: Answer): Models {
  const model: Model = {
    async *stream(request, signal) {
      const made = answer(request, signal);
      if (typeof made !== 'string') return yield* made;
      for (let start = 0; start < made.length; start += 8) {
        await new Promise<void>((resolve) => setImmediate(resolve));
        signal.throwIfAborted();
        yield { type: 'text', text: made.slice(start, start + 8) };
      }
      yield {
        type: 'finish',
        stop: 'end',
        usage: { inputTokens: 10, outputTokens: 5, cachedTokens: 2, reasoningTokens: 1 },
      };
    },
  };
  return { resolve: async () => model, defaults: () => ({ provider: 'test', model: 'test' }) };
}

export interface Room {
  parley: OpenParley;
  dir: string;
  world: string;
  chat: string;
  log: ReturnType<typeof memoryLog>;
  events: WorldEvent[];
  say(content: string): ReturnType<OpenParley['post']>;
  idle(): Promise<void>;
  messages(): Promise<Message[]>;
  texts(): Promise<string[]>;
  stored(): StoredEvent[];
  /** Resolves with the first event that fits, also one that has been. */
  event<T extends WorldEvent['type']>(
    type: T,
    fits?: (event: Extract<WorldEvent, { type: T }>) => boolean,
  ): Promise<Extract<WorldEvent, { type: T }>>;
  /** Closes the server and opens it again on the same directory. */
  reopen(options?: Partial<ParleyOptions>): Promise<void>;
  close(): Promise<void>;
}

/** A world on a real store in a temporary folder, with the given agents, by name. */
export async function openRoom(options: {
  answer: Answer;
  agents: readonly string[];
  world?: Partial<WorldSettings>;
  parley?: Partial<ParleyOptions>;
}): Promise<Room> {
  const dir = mkdtempSync(join(tmpdir(), 'parley-room-'));
  const log = memoryLog();
  const config = loadConfig({ data: dir }, {});
  const open = (more: Partial<ParleyOptions> = {}) =>
    openParley({
      config,
      log,
      version: 'test',
      demo: false,
      models: answering(options.answer),
      ...options.parley,
      ...more,
    });
  let parley = await open();
  const settings = WorldSettings.parse({ name: 'room', ...options.world, mainAgent: null });
  const world = (await parley.createWorld(OWNER, settings)).id;
  for (const name of options.agents) await parley.createAgent(OWNER, world, AgentSettings.parse({ name }));
  if (options.world?.mainAgent) await parley.patchWorld(OWNER, world, { mainAgent: options.world.mainAgent });
  const chat = (await parley.createChat(OWNER, world, {})).id;
  const events: WorldEvent[] = [];
  const watchers = new Set<(event: WorldEvent) => void>();
  const listen = () =>
    parley.bus.subscribe(world, (event) => {
      events.push(event);
      for (const watch of watchers) watch(event);
    });
  listen();
  const room: Room = {
    get parley() {
      return parley;
    },
    dir,
    world,
    chat,
    log,
    events,
    say: (content) => parley.post(OWNER, world, chat, content),
    async idle() {
      if (!(await parley.whenIdle(OWNER, world, chat, 20_000))) throw new Error('the chat did not become idle');
    },
    messages: async () => (await parley.messages(OWNER, world, chat, { limit: 500 })).messages,
    texts: async () => (await room.messages()).map((message) => `${message.sender.name}: ${message.content}`),
    stored: () => events.filter(isStored),
    event(type, fits = () => true) {
      type Wanted = Extract<WorldEvent, { type: typeof type }>;
      const isIt = (event: WorldEvent): event is Wanted => event.type === type && fits(event as Wanted);
      const known = events.find(isIt);
      if (known) return Promise.resolve(known);
      return new Promise<Wanted>((resolve) => {
        const watch = (event: WorldEvent) => {
          if (!isIt(event)) return;
          watchers.delete(watch);
          resolve(event);
        };
        watchers.add(watch);
      });
    },
    async reopen(more) {
      await parley.close();
      parley = await open(more);
      listen();
    },
    async close() {
      await parley.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  return room;
}

/** A gate that tests open by hand. */
export function gate(): { opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}
