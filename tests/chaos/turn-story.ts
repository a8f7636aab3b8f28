import type { Message, Turn } from '../../core/protocol/entities.ts';

/** A turn that was running at so many crashes is not tried again. */
export const MAX_ATTEMPTS = 3;

/** The events that end a turn, with the states that it may have in them. */
export const TURN_ENDS: Record<string, readonly string[]> = {
  'turn.done': ['done', 'silent'],
  'turn.failed': ['failed'],
  'turn.stopped': ['stopped'],
};

/** What the log tells of one turn, from its place in the queue to its one end. */
export class TurnStory {
  readonly id: string;
  last: Turn | null = null;
  reply: Message | null = null;
  #ended = 0;
  readonly #faults: string[] = [];

  constructor(id: string) {
    this.id = id;
  }

  heard(type: string, turn: Turn): void {
    if (this.last === null && type !== 'turn.queued') this.#faults.push(`turn ${this.id} begins with ${type}`);
    if (this.#ended > 0) this.#faults.push(`turn ${this.id} goes on with ${type} after its end`);
    if (this.last && turn.attempt < this.last.attempt) this.#faults.push(`turn ${this.id} went back in its attempts`);
    const states = TURN_ENDS[type];
    if (states) this.#ended += 1;
    const fits = states?.includes(turn.state) ?? type === `turn.${turn.state === 'running' ? 'started' : turn.state}`;
    if (!fits) this.#faults.push(`turn ${this.id} is ${turn.state} in its ${type}`);
    this.last = turn;
  }

  replied(message: Message): void {
    if (this.reply) this.#faults.push(`turn ${this.id} replied twice: ${this.reply.id} and ${message.id}`);
    this.reply = message;
  }

  hasEnded(): boolean {
    return this.#ended > 0;
  }

  /** What is wrong with the whole of it. */
  end(): string[] {
    if (this.#ended !== 1) this.#faults.push(`turn ${this.id} has ${this.#ended} ends; it is ${this.last?.state}`);
    if (this.last?.state === 'done' && !this.reply) this.#faults.push(`turn ${this.id} is done without a reply`);
    return this.#faults;
  }
}
