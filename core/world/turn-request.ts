import type { ModelRequest, Models, Roster, Tool, TurnWork } from '../ports.ts';
import type { Message, WorldAgent } from '../protocol/entities.ts';
import { AppError } from '../protocol/errors.ts';
import { buildConversation, type ChatWindow } from './context.ts';
import { effectiveTools } from './permission.ts';

/** Provider, model and parameters: the agent's own, else the world's defaults, else the server's. */
export async function prepareRequest(
  deps: { models: Models; tools: readonly Tool[]; maxTokens: number },
  work: TurnWork,
  roster: Roster,
  window: ChatWindow,
  trigger: Message,
) {
  const { agent } = work;
  const { provider, model } = chooseModel(agent, roster, deps.models);
  const conversation = buildConversation(work, roster, window, trigger);
  const request: { -readonly [K in keyof ModelRequest]: ModelRequest[K] } = {
    model,
    system: conversation.system,
    messages: conversation.messages,
    tools: effectiveTools(deps.tools, agent, roster.world).map(({ name, description, parameters }) => ({
      name,
      description,
      parameters,
    })),
    maxTokens: Math.min(deps.maxTokens, agent.limits.maxTokens ?? deps.maxTokens),
    scene: {
      agent: { id: agent.id, name: agent.name },
      from: trigger.sender.name,
      text: trigger.content,
      turn: work.ordinal,
      agents: roster.agents
        .filter((other) => other.status === 'active' && other.id !== agent.id)
        .map((other) => other.name),
    },
  };
  if (agent.temperature !== null) request.temperature = agent.temperature;
  if (agent.reasoningEffort !== null && agent.reasoningEffort !== 'inherit')
    request.reasoningEffort = agent.reasoningEffort;
  return { model: await deps.models.resolve(provider), provider, request };
}

/** A model name belongs to its provider: an agent that names a provider never gets the world's model of another. */
export function chooseModel(agent: WorldAgent, roster: Roster, models: Models): { provider: string; model: string } {
  const server = models.defaults();
  const { chatLLMProvider, chatLLMModel } = roster.world;
  const provider = agent.provider ?? chatLLMProvider ?? server.provider;
  if (agent.model !== null) return { provider, model: agent.model };
  if (chatLLMModel !== null && provider === (chatLLMProvider ?? server.provider))
    return { provider, model: chatLLMModel };
  if (provider === server.provider) return { provider, model: server.model };
  throw new AppError(
    'provider_invalid_request',
    `no model is set for provider ${provider}: give ${agent.name} a model, or the world a chatLLMModel`,
  );
}
