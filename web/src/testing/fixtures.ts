import type { Approval, Chat, Message, Turn, World, WorldAgent } from '../../../core/protocol/entities.ts';
import type { LiveEvent, StoredEvent } from '../../../core/protocol/events.ts';
import type { AgentId, ApprovalId, ChatId, MessageId, TurnId, WorldId } from '../../../core/protocol/ids.ts';
import type { WorldDetail } from '../../../core/protocol/requests.ts';

const at = '2026-01-01T10:00:00.000Z';
const worldId = 'demo' as WorldId;
const usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0, usd: 0, calls: 0 };

export function agent(id: string, more: Partial<WorldAgent> = {}): WorldAgent {
  const name = id.charAt(0).toUpperCase() + id.slice(1);
  return {
    id: id as AgentId,
    name,
    displayName: null,
    description: '',
    status: 'active',
    provider: null,
    ...more,
  } as WorldAgent;
}

export const chat = (id: string, more: Partial<Chat> = {}): Chat => ({
  id: id as ChatId,
  worldId,
  title: '',
  head: null,
  parentChatId: null,
  paused: false,
  lastSeq: 0,
  createdAt: at,
  updatedAt: at,
  ...more,
});

export const message = (seq: number, more: Partial<Message> = {}): Message => ({
  id: `m${seq}` as MessageId,
  worldId,
  chatId: 'c1' as ChatId,
  seq,
  parentId: seq > 1 ? (`m${seq - 1}` as MessageId) : null,
  sender: { kind: 'human', id: 'owner', name: 'Owner' },
  content: `message ${seq}`,
  routing: { woke: [], ignored: [] },
  status: 'complete',
  createdAt: at,
  ...more,
});

export const answer = (seq: number, agentId: string, turnId: string, more: Partial<Message> = {}): Message =>
  message(seq, { sender: { kind: 'agent', id: agentId, name: agentId }, turnId: turnId as TurnId, ...more });

export const turn = (id: string, state: Turn['state'], more: Partial<Turn> = {}): Turn => ({
  id: id as TurnId,
  worldId,
  chatId: 'c1' as ChatId,
  agentId: 'planner' as AgentId,
  state,
  trigger: { messageId: 'm1' as MessageId, seq: 1, reason: 'address' },
  attempt: 1,
  usage,
  queuedAt: at,
  startedAt: null,
  endedAt: null,
  ...more,
});

const yesAndNo = [
  { id: 'yes', label: 'Allow' },
  { id: 'no', label: 'Deny' },
];
export const approval = (id: string, more: Partial<Approval> = {}): Approval => ({
  id: id as ApprovalId,
  worldId,
  chatId: 'c1' as ChatId,
  turnId: 't1' as TurnId,
  agentId: 'planner' as AgentId,
  kind: 'create_agent',
  title: 'Create Scout',
  message: 'Scout may read',
  questions: [{ id: 'q1', header: '', question: 'Create Scout?', options: yesAndNo }],
  options: yesAndNo,
  defaultOptionId: 'no',
  status: 'pending',
  createdAt: at,
  ...more,
});

/** An approval as `by` has left it. */
export const decided = (id: string, status: Approval['status'], by = 'Owner'): Approval =>
  approval(id, { status, resolution: { optionId: status === 'answered' ? 'yes' : 'no', by, at } });

export const detail = (agents: WorldAgent[], chats: Chat[]): WorldDetail =>
  ({ ...({ id: worldId, name: 'Demo', mainAgent: null } as unknown as World), agents, chats }) as WorldDetail;

let seq = 0;
export function stored(type: StoredEvent['type'], data: unknown, chatId = 'c1'): StoredEvent {
  seq += 1;
  return { type, seq, world: worldId, chat: chatId, at, data } as unknown as StoredEvent;
}

export function delta(
  turnId: string,
  runId: string,
  index: number,
  text: string,
  kind: 'message' | 'reasoning' = 'message',
): LiveEvent {
  const data = { turnId, agentId: 'planner', runId, index, text };
  return { type: `${kind}.delta`, world: worldId, chat: 'c1', at, data } as unknown as LiveEvent;
}
