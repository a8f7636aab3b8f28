import type { RoutePlan } from '../ports.ts';
import type { Sender, WakeReason } from '../protocol/entities.ts';
import type { MessageId } from '../protocol/ids.ts';
import { planRoute } from './limits.ts';
import type { CompiledWorld } from './rosters.ts';
import { route } from './router.ts';

export interface PlannedMessage {
  /** The text to store; '' where there is nothing to publish. */
  published: string;
  plan: RoutePlan;
}

/** Routes what a person says. */
export function planHumanMessage(
  roster: CompiledWorld,
  message: { id: MessageId; sender: Sender; content: string; nowMs: number },
): PlannedMessage {
  const { id, sender, content, nowMs } = message;
  const routed = route({ content, sender, roster: roster.compiled, settings: roster.world });
  const plan = planRoute({
    routed,
    messageId: id,
    sender,
    isHuman: true,
    settings: roster.world,
    roster: roster.compiled,
    rosterRev: roster.rev,
    hop: 0,
    nowMs,
  });
  return { published: routed.published, plan };
}

export interface AgentMessage {
  id: MessageId;
  sender: Sender;
  content: string;
  /** Who wrote the message that this one answers. */
  replyTo: Sender;
  /** Why the turn that wrote this was woken. */
  wokenBy: WakeReason;
  /** Length of the chain of agent messages that ends with this one. */
  hop: number;
  nowMs: number;
}

/** Routes what an agent says. */
export function planAgentMessage(roster: CompiledWorld, message: AgentMessage): PlannedMessage {
  const { id, sender, content, replyTo, wokenBy, hop, nowMs } = message;
  const routed = route({ content, sender, roster: roster.compiled, settings: roster.world, replyTo, wokenBy });
  const plan = planRoute({
    routed,
    messageId: id,
    sender,
    isHuman: false,
    settings: roster.world,
    roster: roster.compiled,
    rosterRev: roster.rev,
    hop,
    nowMs,
  });
  return { published: routed.published, plan };
}
