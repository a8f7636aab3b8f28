import type { Approvals, Tool } from '../ports.ts';
import type { Rule, World, WorldAgent } from '../protocol/entities.ts';

/**
 * The tools that an agent may use: what its definition allows, minus what it blocks, within its maker's tools and the
 * world's permission. Used for the list that the model sees and again at execution. Block beats allow; an empty
 * `allow` is none; names are exact, then without regard to case.
 */
export function effectiveTools(catalog: readonly Tool[], agent: WorldAgent, world: World): Tool[] {
  const { allow, block } = agent.tools;
  const allowed = allow === undefined ? null : resolveNames(allow, catalog);
  const blocked = resolveNames(block ?? [], catalog);
  const ceiling = agent.ceiling === undefined ? null : new Set(agent.ceiling);
  return catalog.filter(
    (tool) =>
      (allowed === null || allowed.has(tool.name)) &&
      !blocked.has(tool.name) &&
      (ceiling === null || ceiling.has(tool.name)) &&
      (world.toolPermission !== 'read' || tool.effect === 'read' || tool.asks === 'always'),
  );
}

/** A name that no tool has resolves to nothing: a list of unknown names alone is no tools, never all. */
function resolveNames(names: readonly string[], catalog: readonly Tool[]): Set<string> {
  const byFold = new Map(catalog.map((tool) => [tool.name.toLowerCase(), tool.name]));
  const exact = new Set(catalog.map((tool) => tool.name));
  return new Set(names.flatMap((name) => (exact.has(name) ? [name] : (byFold.get(name.toLowerCase()) ?? []))));
}

export type Verdict = { verdict: 'allow' } | { verdict: 'ask' } | { verdict: 'deny'; why: string };

/** Whether a call runs, asks or is refused: deny over ask over allow, then remembered grants, then the world's mode. */
export async function judge(
  store: Approvals,
  call: { tool: Tool; argsHash: string; agent: WorldAgent; world: World; chat: string },
): Promise<Verdict> {
  const { tool, agent, world, chat, argsHash } = call;
  const rules = (await store.rules(world.id)).filter((rule) => fits(rule, tool, agent));
  if (rules.some((rule) => rule.effect === 'deny')) {
    return { verdict: 'deny', why: `A rule of this world does not let ${agent.name} use ${tool.name}.` };
  }
  if (tool.asks === 'always' || tool.asks === 'question') return { verdict: 'ask' };
  if (rules.some((rule) => rule.effect === 'ask')) return { verdict: 'ask' };
  if (rules.some((rule) => rule.effect === 'allow')) return { verdict: 'allow' };
  if (tool.effect === 'read' || world.toolPermission === 'auto') return { verdict: 'allow' };
  const grant = await store.findGrant(world.id, { chat, agent: agent.id, tool: tool.name, argsHash });
  return grant ? { verdict: 'allow' } : { verdict: 'ask' };
}

const fits = (rule: Rule, tool: Tool, agent: WorldAgent): boolean =>
  (rule.tool === '*' || rule.tool.toLowerCase() === tool.name.toLowerCase()) &&
  (rule.agent === undefined || rule.agent.toLowerCase() === agent.id.toLowerCase());
