import type { Ignored } from '../ports.ts';
import type { IgnoreReason, Sender, WakeReason } from '../protocol/entities.ts';
import type { AgentId } from '../protocol/ids.ts';
import type { CompiledRoster, StopWord } from './mentions.ts';
import { closestAgent } from './suggest.ts';
import type { WrittenName } from './to-list.ts';

export interface RouteResult {
  /** What is stored; '' means nothing is to be published, and an agent's turn ends silent. */
  published: string;
  woke: readonly { agentId: AgentId; reason: WakeReason }[];
  ignored: readonly Ignored[];
  stop?: StopWord;
  /** The message gives the floor to the person. */
  toHuman: boolean;
  /** For each agent woken by its own name: what was written, and how many of `ignored` were written before. */
  written: ReadonlyMap<string, { text: string; after: number }>;
}

/** Suggestions cost a look at every agent; a message full of unknown names gets them for its first few. */
const MAX_SUGGESTIONS = 8;

/** Collects whom one message wakes and what it ignores, in the order of the text, each once. */
export class Receipt {
  readonly #roster: CompiledRoster;
  readonly #woke = new Map<AgentId, WakeReason>();
  readonly #ignored = new Map<string, Ignored>();
  readonly #written = new Map<string, { text: string; after: number }>();
  #suggestions = 0;
  #toHuman = false;

  constructor(roster: CompiledRoster) {
    this.#roster = roster;
  }

  giveFloor(): void {
    this.#toHuman = true;
  }

  /** Wakes the named active agent, or reports that it is woken already. */
  wake(name: WrittenName, reason: WakeReason): void {
    if (name.named.type !== 'agent') return;
    const { agentId } = name.named;
    if (this.#woke.has(agentId)) {
      this.ignore(name, 'duplicate');
      return;
    }
    this.#woke.set(agentId, reason);
    this.#written.set(agentId, { text: name.text, after: this.#ignored.size });
  }

  /** Wakes every active agent but the sender; where that is nobody new, the name that asked for it is reported. */
  wakeAll(name: WrittenName | null, reason: WakeReason, sender: Sender): void {
    const before = this.#woke.size;
    for (const agent of this.#roster.agents) {
      const isSender = sender.kind === 'agent' && sender.id === agent.id;
      if (agent.status === 'active' && !isSender && !this.#woke.has(agent.id)) this.#woke.set(agent.id, reason);
    }
    if (name && this.#woke.size === before) this.ignore(name, 'duplicate');
  }

  /** Wakes an agent that a setting or a reply points to; one that cannot be woken is reported by its id. */
  wakeById(id: string, reason: WakeReason): void {
    const agent = this.#roster.byId.get(id);
    if (agent?.status === 'active') this.#woke.set(agent.id, reason);
    else if (agent) this.ignore({ text: id, named: { type: 'agent', agentId: agent.id } }, 'inactive');
    else this.ignore({ text: id, named: { type: 'unknown' } }, 'unknown');
  }

  ignore(name: WrittenName, reason: IgnoreReason): void {
    const key = `${reason} ${name.text}`;
    if (this.#ignored.has(key)) return;
    const entry: Ignored = { text: name.text, reason };
    if (name.named.type === 'agent') entry.agentId = name.named.agentId;
    if (reason === 'unknown' && this.#suggestions < MAX_SUGGESTIONS) {
      this.#suggestions += 1;
      const suggestion = closestAgent(name.text.replace(/^[@＠]/, ''), this.#roster);
      if (suggestion !== undefined) entry.suggestion = suggestion;
    }
    this.#ignored.set(key, entry);
  }

  result(published: string, stop?: StopWord): RouteResult {
    return {
      published,
      woke: [...this.#woke].map(([agentId, reason]) => ({ agentId, reason })),
      ignored: [...this.#ignored.values()],
      ...(stop ? { stop } : {}),
      toHuman: this.#toHuman,
      written: this.#written,
    };
  }
}
