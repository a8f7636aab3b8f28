/** Parley as one of the measured programs: the real engine on its real SQLite store, with a model that costs nothing. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../core/config.ts';
import { type OpenParley, OWNER, openParley } from '../core/index.ts';
import type { Log, Model, ModelPart, Models } from '../core/ports.ts';
import { AgentSettings, WorldSettings } from '../core/protocol/entities.ts';

/** What the harness counts: every streamed piece that a client sees, and every turn's end. */
export interface Sink {
  chunk(text: string): void;
  turn(): void;
}

/** The common workload, so that every program gets the same text. */
export interface Workload {
  turns: number;
  agents: number;
  chunksFor(mention: string | null): string[];
  tick(): Promise<void>;
  system(name: string): string;
}

const silent: Log = { debug() {}, info() {}, warn: console.error, error: console.error };

/** The fake provider: each chunk arrives in a macrotask of its own, as over a socket. */
function fakeModels(workload: Workload, mentionFor: (agent: string) => string | null): Models {
  const model: Model = {
    async *stream({ scene }): AsyncIterable<ModelPart> {
      for (const text of workload.chunksFor(mentionFor(scene.agent.id))) {
        await workload.tick();
        yield { type: 'text', text };
      }
      yield {
        type: 'finish',
        stop: 'end',
        usage: { inputTokens: 100, outputTokens: 100, cachedTokens: 0, reasoningTokens: 0 },
      };
    },
  };
  return { resolve: async () => model, defaults: () => ({ provider: 'fake', model: 'fake' }) };
}

export interface Bench {
  parley: OpenParley;
  /** What the last `play` executed from its message on. */
  spent(): { statements: number; commits: number };
  /** One fresh world and chat, then `message` in it; resolves when the chat is idle. */
  play(names: readonly string[], message: string, sink: Sink): Promise<void>;
  close(): Promise<void>;
}

/** Opens a Parley in a temporary folder. Chunks are not joined, so that the sink sees each one. */
export async function openBench(
  workload: Workload,
  mentionFor: (agent: string) => string | null,
  folder = tmpdir(),
): Promise<Bench> {
  const dir = mkdtempSync(join(folder, 'parley-bench-'));
  const parley = await openParley({
    config: loadConfig({ data: dir }, {}),
    log: silent,
    version: 'bench',
    demo: false,
    joinMs: 0,
    models: fakeModels(workload, mentionFor),
  });
  let worlds = 0;
  let spent = { statements: 0, commits: 0 };
  return {
    parley,
    spent: () => spent,
    async play(names, message, sink) {
      const settings = { turnLimit: null, hopLimit: null, pairLimit: null, chatTurnLimit: null };
      const world = await parley.createWorld(OWNER, WorldSettings.parse({ name: `w${++worlds}`, ...settings }));
      for (const name of names) {
        await parley.createAgent(OWNER, world.id, AgentSettings.parse({ name, systemPrompt: workload.system(name) }));
      }
      const chat = await parley.createChat(OWNER, world.id, {});
      const unsubscribe = parley.bus.subscribe(world.id, (event) => {
        if (event.type === 'message.delta') sink.chunk(event.data.text);
        else if (event.type === 'turn.done') sink.turn();
      });
      const before = parley.store.counters();
      await parley.post(OWNER, world.id, chat.id, message);
      await parley.whenIdle(OWNER, world.id, chat.id, 120_000);
      const after = parley.store.counters();
      spent = { statements: after.statements - before.statements, commits: after.commits - before.commits };
      unsubscribe();
    },
    async close() {
      await parley.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export interface Measured {
  w1(sink: Sink): Promise<void>;
  w2(sink: Sink): Promise<void>;
  spent(): Record<'w1' | 'w2', { statements: number; commits: number }>;
  close(): Promise<void>;
}

/** The harness's interface: W1 hands over between two agents, W2 broadcasts to many. */
export async function setup(workload: Workload, folder?: string): Promise<Measured> {
  let left = 0;
  const handOver = await openBench(
    workload,
    (agent) => (--left > 0 ? (agent === 'a1' ? 'a2' : 'a1') : 'human'),
    folder,
  );
  const broadcast = await openBench(workload, () => 'human', folder);
  return {
    async w1(sink) {
      left = workload.turns;
      await handOver.play(['a1', 'a2'], '@a1 begin', sink);
    },
    async w2(sink) {
      const names = Array.from({ length: workload.agents }, (_, index) => `a${index}`);
      await broadcast.play(names, 'Hello all', sink);
    },
    spent: () => ({ w1: handOver.spent(), w2: broadcast.spent() }),
    async close() {
      await handOver.close();
      await broadcast.close();
    },
  };
}
