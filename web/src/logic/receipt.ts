import type { Message, Routing, WorldAgent } from '../../../core/protocol/entities.ts';

export interface Woken {
  readonly agentId: string;
  readonly name: string;
}

/** One thing that a message mentions and that woke nobody, in words for a person. */
export interface Unwoken {
  readonly text: string;
  readonly why: string;
  /** Whom to forward the message to, where that would make sense. */
  readonly forwardTo: Woken | null;
  readonly suggestion: Woken | null;
  /** Worth a line of its own; the rest is listed on demand. */
  readonly isNotable: boolean;
}

export interface Receipt {
  readonly woke: readonly Woken[];
  /** Why these agents, where it is not simply that they were named. */
  readonly how: string;
  readonly unwoken: readonly Unwoken[];
}

type Reason = Routing['woke'][number]['reason'];
const HOW: Record<Reason, string> = {
  address: 'by name',
  main_agent: 'main agent, as nobody was named',
  broadcast: 'everyone, as nobody was named',
  all: 'everyone was called',
  auto_reply: 'automatic reply',
  world_tag: 'by a TO tag',
  transition: 'the run moved on',
  delegation: 'a delegated task is done',
  schedule: 'on schedule',
  forward: 'forwarded',
};

export function nameOfAgent(agents: readonly WorldAgent[], id: string): string {
  const agent = agents.find((one) => one.id === id);
  return agent?.displayName ?? agent?.name ?? id;
}

/** Reads the routing of a message. Empty for a message that is not routed. */
export function receiptOf(message: Pick<Message, 'routing' | 'sender'>, agents: readonly WorldAgent[]): Receipt {
  const named = (agentId: string): Woken => ({ agentId, name: nameOfAgent(agents, agentId) });
  const woke = message.routing.woke.map(({ agentId }) => named(agentId));
  const reasons = [...new Set(message.routing.woke.map(({ reason }) => reason))];
  const how = reasons.map((reason) => HOW[reason]).join(', ');
  const wokeIds = new Set(woke.map(({ agentId }) => agentId));
  const unwoken = message.routing.ignored.map((ignored): Unwoken => {
    const target = ignored.agentId === undefined ? null : named(ignored.agentId);
    const who = target?.name ?? ignored.text;
    const isLive = target !== null && agents.some((agent) => agent.id === target.agentId && agent.status === 'active');
    const mayForward = isLive && !wokeIds.has(target.agentId) && target.agentId !== message.sender.id;
    const suggestion = ignored.suggestion === undefined ? null : named(ignored.suggestion);
    const [why, forwards, isNotable] = explain(ignored.reason, who);
    return { text: ignored.text, why, forwardTo: forwards && mayForward ? target : null, suggestion, isNotable };
  });
  return { woke, how, unwoken };
}

type IgnoreReason = Routing['ignored'][number]['reason'];

/** Words, whether forwarding helps, whether it deserves a line. */
function explain(reason: IgnoreReason, who: string): [why: string, forwards: boolean, isNotable: boolean] {
  switch (reason) {
    case 'reference':
      return [`${who} was mentioned, not addressed: a name in mid-text wakes nobody`, true, true];
    case 'code':
      return ['stands in code, so it is not a mention', true, false];
    case 'quote':
      return ['stands in a quotation, so it is not a mention', true, false];
    case 'unknown':
      return ['nobody here has this name', false, true];
    case 'self':
      return ['an agent cannot wake itself', false, false];
    case 'inactive':
      return [`${who} is muted and was not woken`, false, true];
    case 'duplicate':
      return [`${who} is already woken by this message`, false, false];
    case 'empty_address':
      return ['the message says nothing beside the name, so nobody was woken', true, false];
    case 'broadcast_refused':
      return ['agents may not call everyone in this world', false, true];
    case 'limit':
      return [`${who} was held back by a limit`, false, true];
    case 'stopped':
      return [`the message ends the conversation, so ${who} was not woken`, true, false];
  }
}
