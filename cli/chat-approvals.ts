import type { Approval } from '../core/protocol/entities.ts';
import type { AnswerApproval } from '../core/protocol/requests.ts';
import { answerWith, noTo } from './approval-answer.ts';
import { renderCard, renderOutcome, renderQuestion } from './approval-card.ts';
import { createDesk, keysOf } from './approval-desk.ts';
import type { Console } from './chat-console.ts';
import type { Client } from './client.ts';
import { type Io, line, type Style } from './io.ts';
import { safeName } from './safe-text.ts';

export interface ChatApprovalsOptions {
  client: Pick<Client, 'answer'>;
  io: Io;
  style: Style;
  console: Console;
  nameOf(agentId: string): string;
}

/** Approvals in a conversation: shows them, and sends the decisions that lines at their prompt make. */
export function createChatApprovals({ client, io, style, console, nameOf }: ChatApprovalsOptions) {
  const desk = createDesk();
  const carded = new Set<string>();
  const questioned = new Set<string>();
  let tellWaiting = () => {};

  const say = (text: string) => {
    console.hide();
    line(io.stderr, text);
  };

  const card = (approval: Approval) => {
    if (carded.has(approval.id)) return;
    carded.add(approval.id);
    say(renderCard(approval, nameOf(approval.agentId), desk.numberOf(approval.id), style));
  };

  /** The prompt for what comes next: the oldest approval that waits, else an ordinary one. */
  const present = () => {
    const asked = desk.current();
    if (asked === null) return console.show('you', null);
    const { approval, number, question, place, key } = asked;
    card(approval);
    if (!questioned.has(key)) {
      questioned.add(key);
      if (approval.kind === 'ask_user') say(renderQuestion(question, place, approval.questions.length, style));
      if (!console.isTerminal) say(style.dim(`approval #${number} takes: ${keysOf(asked)}`));
    }
    console.hide();
    console.show(`approval #${number} (${keysOf(asked)})`, key);
  };

  const send = async (approval: Approval, answer: AnswerApproval) => {
    const answered = await client.answer(approval.worldId, approval.id, answer);
    if (!answered.accepted) say(style.warn('it was decided before:'));
    if (desk.see(answered.approval) === 'gone' || !answered.accepted) say(renderOutcome(answered.approval, style));
  };

  return {
    present,
    pending: desk.pending,
    isAsking: () => console.asked() !== null,
    /** Takes an approval in any state, as the chat's follower tells it. */
    see(approval: Approval): void {
      const change = desk.see(approval);
      if (change === 'known') return;
      if (change === 'gone') {
        // What was shown may have ended: a line at the old prompt then decides nothing.
        say(renderOutcome(approval, style));
        if (console.isTerminal && !console.isTyping()) present();
        return;
      }
      tellWaiting();
      if (!console.isTerminal) return;
      if (console.asked() !== null) {
        say(style.dim(`approval #${desk.numberOf(approval.id)} waits too; /approvals lists all`));
        console.restore();
      } else if (console.isTyping()) {
        card(approval);
        say(style.dim('what you are typing is still a message; the approval is asked after it'));
        console.show('you', null);
      } else {
        present();
      }
    },
    /** Resolves when something waits for the person. */
    async untilWaiting(): Promise<void> {
      if (desk.current() !== null) return;
      await new Promise<void>((resolve) => {
        tellWaiting = resolve;
      });
    },
    /** What a line at the prompt of a question does; true where it is no message. */
    async take(key: string, text: string): Promise<boolean> {
      const reading = desk.read(key, text);
      if (reading === null) {
        say(style.warn('that approval waits no longer; nothing was sent'));
        return true;
      }
      switch (reading.kind) {
        case 'message':
          say(style.dim('sent as a message; the approval still waits'));
          return false;
        case 'hint':
          say(style.warn(reading.text));
          return true;
        case 'next':
          return true;
        case 'answer':
          await send(reading.approval, reading.answer);
          return true;
      }
    },
    list(): void {
      const entries = desk.pending();
      if (entries.length === 0) say(style.dim('nothing waits for a decision in this chat'));
      for (const { number, approval } of entries) {
        const who = safeName(nameOf(approval.agentId));
        say(`#${number} ${who}: ${safeName(approval.title)} ${style.dim(safeName(approval.id))}`);
      }
    },
    /** `/answer N`, `/answer N OPTION`, `/answer N OPTION some words`. */
    async command(rest: string): Promise<void> {
      const [, number = '', word, text] = /^(\d{1,6})(?:\s+(\S+)(?:\s+(.+))?)?$/s.exec(rest.trim()) ?? [];
      const approval = number === '' ? null : desk.byNumber(Number(number));
      if (number === '') return say(style.warn('/answer N OPTION, with N from /approvals'));
      if (approval === null) return say(style.warn(`no approval #${number} waits; /approvals lists them`));
      if (word === undefined) {
        desk.bringForward(approval.id);
        carded.delete(approval.id);
        questioned.clear();
        return;
      }
      if (word === 'skip') return send(approval, noTo(approval, text));
      const choice = answerWith(approval, word, text);
      if (choice.ok) return send(approval, choice.answer);
      say(style.warn(`#${number}: ${choice.hint}`));
    },
  };
}
export type ChatApprovals = ReturnType<typeof createChatApprovals>;
