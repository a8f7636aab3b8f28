import type { ProviderStatus, World, WorldAgent } from '../../../core/protocol/entities.ts';

export type ModelState =
  | { readonly kind: 'ready' }
  /** Agents answer, but from rules. */
  | { readonly kind: 'scripted'; readonly agents: number }
  /** Agents name a provider that is not set up, or none at all. */
  | { readonly kind: 'missing'; readonly agents: readonly string[]; readonly provider: string | null };

/** Whether the active agents of a world have a model behind them. */
export function modelState(
  world: Pick<World, 'chatLLMProvider'>,
  agents: readonly WorldAgent[],
  providers: readonly ProviderStatus[],
): ModelState {
  const active = agents.filter((agent) => agent.status === 'active');
  const providerOf = (agent: WorldAgent): string | null => agent.provider ?? world.chatLLMProvider;
  const isReady = (id: string | null): boolean => providers.some((one) => one.id === id && one.configured);
  const missing = active.filter((agent) => !isReady(providerOf(agent)));
  const first = missing[0];
  if (first) return { kind: 'missing', agents: missing.map((agent) => agent.name), provider: providerOf(first) };
  const scripted = active.filter((agent) => providerOf(agent) === 'script').length;
  return scripted > 0 && scripted === active.length ? { kind: 'scripted', agents: scripted } : { kind: 'ready' };
}
