import { z } from 'zod';
import type { Idempotency, Mutations, Tool, ToolContext, ToolResult } from '../ports.ts';
import { AgentSettings, type World, type WorldAgent } from '../protocol/entities.ts';
import { AppError } from '../protocol/errors.ts';
import type { StoredEvent } from '../protocol/events.ts';
import { type AgentId, foldName, idFromName, RESERVED_IDS } from '../protocol/ids.ts';
import { argsHash } from '../safety/args-hash.ts';
import { showInvisible } from '../safety/show-invisible.ts';

export interface CreateAgentDeps {
  store: Pick<Mutations, 'createAgent'>;
  /** The world and its agents as they are now. */
  look(world: string): Promise<{ world: World; agents: readonly WorldAgent[] }>;
  /** What an agent gets where its world names no provider and model. */
  defaults(): { provider: string; model: string };
  created(world: string, events: readonly StoredEvent[]): void;
}

const text = z
  .string()
  .transform((value) => value.replace(/\s+/gu, ' ').trim())
  .pipe(z.string().min(1).max(1000));

const Args = z.strictObject({
  name: text.pipe(z.string().max(100)),
  autoReply: z.boolean().default(true),
  role: text.optional(),
  nextAgent: text
    .transform((value) => value.replace(/^[@＠]+\s*/u, ''))
    .pipe(z.string().min(1).max(100))
    .default('human'),
});
type Args = z.infer<typeof Args>;

/** Other spellings of the arguments; the canonical key wins where both are given. */
const ALIASES: readonly (readonly [string, keyof Args])[] = [
  ['auto-reply', 'autoReply'],
  ['auto_reply', 'autoReply'],
  ['next agent', 'nextAgent'],
  ['next-agent', 'nextAgent'],
  ['next_agent', 'nextAgent'],
];

/** A copy with canonical keys; the input stays as it is. */
export function canonicalArgs(input: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const args = new Map(Object.entries(input));
  for (const [alias, key] of ALIASES) {
    if (!args.has(alias)) continue;
    const value = args.get(alias);
    args.delete(alias);
    if (!args.has(key)) args.set(key, value);
  }
  return Object.fromEntries(args);
}

/** The one formatter of the prompt of an agent that an agent proposed: the same arguments, the same text. */
export function agentPrompt({
  name,
  role,
  nextAgent,
}: {
  name: string;
  role?: string | undefined;
  nextAgent: string;
}): string {
  const first = role === undefined ? `You are agent ${name}.` : `You are agent ${name}. Your role is ${role}.`;
  return `${first}\n\nAlways respond in exactly this structure:\n@${nextAgent}\n{Your response}`;
}

const json = (payload: Record<string, unknown>): ToolResult => ({
  content: JSON.stringify(payload),
  isError: payload['ok'] !== true,
});
const refusal = (code: string, message: string, name?: string): ToolResult =>
  json({ ok: false, status: 'error', code, created: false, message, ...(name === undefined ? {} : { name }) });

/** Proposes a new agent. A person says yes to its whole prompt and rights before anything is written. */
export function createAgentTool(deps: CreateAgentDeps): Tool {
  /** The id that a name would get, or why it cannot be had. */
  async function check(
    args: Args,
    context: ToolContext,
  ): Promise<{ ok: true; id: AgentId } | { ok: false; result: ToolResult }> {
    const id = idFromName(args.name);
    if (id === '')
      return { ok: false, result: refusal('validation_error', 'name: it needs a letter or a digit', args.name) };
    if (RESERVED_IDS.has(id))
      return { ok: false, result: refusal('validation_error', `name: ${JSON.stringify(id)} is reserved`, args.name) };
    const fold = foldName(id);
    const { agents } = await deps.look(context.worldId);
    if (agents.some((agent) => foldName(agent.id) === fold)) {
      return {
        ok: false,
        result: refusal('agent_exists', `there is already an agent ${JSON.stringify(id)} in this world`, args.name),
      };
    }
    return { ok: true, id: id as AgentId };
  }
  function settingsOf(args: Args, world: World): AgentSettings {
    const server = deps.defaults();
    const provider = world.chatLLMProvider ?? server.provider;
    const model = world.chatLLMModel ?? (provider === server.provider ? server.model : null);
    return AgentSettings.parse({
      name: args.name,
      autoReply: args.autoReply,
      description: args.role ?? '',
      systemPrompt: agentPrompt(args),
      provider,
      model,
    });
  }

  return {
    name: 'create_agent',
    description:
      'Proposes a new agent for this world; a person must approve it first. `name` is required. `role` says what the agent is for. `nextAgent` is whom it addresses after each answer (default: human). `autoReply` (default: true).',
    parameters: {
      type: 'object',
      properties: {
        name: { type: 'string', description: 'name of the new agent, 1 to 100 characters' },
        autoReply: { type: 'boolean', description: 'whether it answers agents that answer it; default true' },
        role: { type: 'string', description: 'what it is for, in one line' },
        nextAgent: { type: 'string', description: 'name of the agent, or human, that it hands over to; default human' },
      },
      required: ['name'],
      additionalProperties: false,
    },
    effect: 'write',
    isRepeatable: true,
    asks: 'always',
    parse(input) {
      const parsed = Args.safeParse(canonicalArgs(input));
      if (parsed.success) return { ok: true, args: parsed.data };
      const issue = parsed.error.issues[0];
      const where = issue?.path.join('.') ?? '';
      return {
        ok: false,
        result: refusal('validation_error', `${where === '' ? 'arguments' : where}: ${issue?.message ?? 'invalid'}`),
      };
    },
    async describe(input, context) {
      const args = input as Args;
      const checked = await check(args, context);
      if (!checked.ok) return checked;
      const { world } = await deps.look(context.worldId);
      const settings = settingsOf(args, world);
      const shown = showInvisible(settings.systemPrompt);
      return {
        ok: true,
        question: {
          title: `Create the agent ${showInvisible(args.name)}?`,
          message: [
            `${context.agent.name} proposes a new agent @${checked.id}.`,
            `Model: ${settings.provider} ${settings.model ?? '(the default of the provider)'}. Replies to agents by itself: ${args.autoReply ? 'yes' : 'no'}.`,
            `Rights: at most the tools of ${context.agent.name}: ${context.effective.length === 0 ? 'none' : context.effective.join(', ')}.`,
            `Its whole prompt:\n\n${shown}`,
          ].join('\n\n'),
          slot: `agent:${foldName(checked.id)}`,
        },
      };
    },
    slotTaken: (args) =>
      refusal('agent_exists', 'another request for this name waits for a person', (args as Args).name),
    denied: (args, reason, words) =>
      reason === 'approval_unavailable'
        ? refusal('approval_unavailable', 'nobody can be asked here, so that nothing was created', (args as Args).name)
        : json({
            ok: false,
            status: 'denied',
            created: false,
            reason,
            name: (args as Args).name,
            ...(words ? { text: words } : {}),
          }),
    async run(input, context) {
      const args = input as Args;
      const { world } = await deps.look(context.worldId);
      const settings = settingsOf(args, world);
      const id = idFromName(args.name) as AgentId;
      const idem: Idempotency = { scope: 'create_agent', key: context.key, hash: argsHash('create_agent', input) };
      try {
        const { value: agent, events } = await deps.store.createAgent(
          context.worldId,
          {
            id,
            fold: foldName(id),
            source: 'tool',
            settings,
            createdBy: context.agent.id,
            ceiling: [...context.effective],
          },
          idem,
        );
        deps.created(context.worldId, events);
        return json({
          ok: true,
          status: 'created',
          created: true,
          agent: {
            id: agent.id,
            name: agent.name,
            type: agent.type,
            autoReply: agent.autoReply,
            provider: agent.provider,
            model: agent.model,
          },
          effective: { role: args.role ?? null, nextAgent: args.nextAgent, systemPrompt: agent.systemPrompt },
        });
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        return refusal(error.code === 'agent_exists' ? 'agent_exists' : 'create_failed', error.message, args.name);
      }
    },
  };
}
