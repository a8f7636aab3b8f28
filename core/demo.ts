import type { Idempotency, Store } from './ports.ts';
import { AgentSettings, WorldSettings } from './protocol/entities.ts';
import { type AgentId, type ChatId, foldName, type WorldId } from './protocol/ids.ts';

const AGENTS = [
  {
    id: 'planner',
    name: 'Planner',
    description: 'splits a request into parts and hands them out',
    role: 'You plan. You split what people ask for into parts and hand each to the agent that fits.',
  },
  {
    id: 'writer',
    name: 'Writer',
    description: 'writes drafts',
    role: 'You write. You answer with a draft in Markdown.',
  },
  {
    id: 'critic',
    name: 'Critic',
    description: 'reviews drafts and names the weakest point',
    role: 'You review. You name what is weakest and how to mend it.',
  },
] as const;

/** A start that is cut off is gone on with by the next: each step is made once. */
const step = (key: string): Idempotency => ({ scope: 'demo', key, hash: '' });

/** The world of the first start: three scripted agents that need no model, no key and no network. */
export async function createDemoWorld(store: Store, chat: ChatId): Promise<void> {
  const world = 'demo' as WorldId;
  await store.createWorld(
    world,
    WorldSettings.parse({
      name: 'Demo',
      description: 'Three scripted agents show how work is handed over. No model is connected.',
      // An agent that is created here can speak at once.
      chatLLMProvider: 'script',
      chatLLMModel: 'demo:newcomer',
    }),
    step('world'),
  );
  for (const { id, name, description, role } of AGENTS) {
    await store.createAgent(
      world,
      {
        id: id as AgentId,
        fold: foldName(id),
        source: 'demo',
        settings: AgentSettings.parse({
          name,
          description,
          systemPrompt: role,
          provider: 'script',
          model: `demo:${id}`,
        }),
      },
      step(`agent ${id}`),
    );
  }
  await store.patchWorld(world, { mainAgent: 'planner' });
  await store.createChat(world, { id: chat, title: '' }, step('chat'));
}
