import type { Approval, Question } from '../core/protocol/entities.ts';
import type { AnswerApproval } from '../core/protocol/requests.ts';
import { noTo, optionList, optionShown, takesWords } from './approval-answer.ts';

/** The question that a prompt shows. `key` names it, so that a typed line counts only for what its prompt showed. */
export interface Asked {
  key: string;
  number: number;
  approval: Approval;
  question: Question;
  place: number;
}

export type Reading =
  | { kind: 'answer'; approval: Approval; answer: AnswerApproval }
  /** The next question of the same approval. */
  | { kind: 'next' }
  | { kind: 'hint'; text: string }
  /** No decision: ordinary text. */
  | { kind: 'message' };

type Given = NonNullable<AnswerApproval['answers']>[number];
interface Entry {
  number: number;
  approval: Approval;
  given: Given[];
}

/** What waits for the person in one conversation, oldest first. A number stands for one approval and is never used again. */
export function createDesk() {
  const seen = new Map<string, number>();
  let entries: Entry[] = [];

  const asked = ({ number, approval, given }: Entry): Asked | null => {
    const place = given.length;
    const question = approval.questions[place];
    return question === undefined ? null : { key: `${approval.id}#${place}`, number, approval, question, place };
  };
  const find = (id: string) => entries.find(({ approval }) => approval.id === id);

  return {
    /** Takes an approval as the server knows it now. */
    see(approval: Approval): 'new' | 'gone' | 'known' {
      const entry = find(approval.id);
      if (approval.status !== 'pending') {
        entries = entries.filter((one) => one !== entry);
        seen.set(approval.id, entry?.number ?? seen.get(approval.id) ?? seen.size + 1);
        return entry ? 'gone' : 'known';
      }
      // A list that was read before a decision must not bring back what was decided.
      if (entry || seen.has(approval.id)) return 'known';
      seen.set(approval.id, seen.size + 1);
      entries.push({ number: seen.size, approval, given: [] });
      return 'new';
    },
    numberOf: (id: string) => seen.get(id) ?? null,
    pending: (): readonly { number: number; approval: Approval }[] => entries,
    byNumber: (number: number): Approval | null => entries.find((one) => one.number === number)?.approval ?? null,
    /** Puts an approval before the others. */
    bringForward(id: string): void {
      const entry = find(id);
      if (entry) entries = [entry, ...entries.filter((one) => one !== entry)];
    },
    current(): Asked | null {
      return entries[0] ? asked(entries[0]) : null;
    },
    /** Reads a line that was typed while the prompt showed `key`. Null: what it showed waits no longer. */
    read(key: string, line: string): Reading | null {
      const entry = entries.find((one) => asked(one)?.key === key);
      const now = entry && asked(entry);
      if (!entry || !now) return null;
      const text = line.trim();
      if (entry.approval.kind !== 'ask_user') return readDecision(entry.approval, text);
      const reading = readAnswer(now, text);
      if (!('given' in reading)) return reading;
      entry.given.push(reading.given);
      if (entry.given.length < entry.approval.questions.length) return { kind: 'next' };
      const answers = entry.given.splice(0);
      return { kind: 'answer', approval: entry.approval, answer: { answers, chatId: entry.approval.chatId } };
    },
  };
}

const NO = /^n(?:\s+(.+))?$/is;
const SKIP = /^\/skip(?:\s+(.+))?$/is;
const NUMBER = /^[1-9]\d?$/;
const RESULT = /^([1-9])\s+(.+)$/s;

/** A number, y, n or n with a reason; nothing else decides. */
function readDecision(approval: Approval, text: string): Reading {
  const refused = NO.exec(text) ?? SKIP.exec(text);
  if (refused) return { kind: 'answer', approval, answer: noTo(approval, refused[1]) };
  const result = approval.kind === 'unknown_outcome' ? RESULT.exec(text) : null;
  if (!result && !NUMBER.test(text) && !/^y$/i.test(text)) return { kind: 'message' };
  const { chatId } = approval;
  const optionId = optionShown(approval, result?.[1] ?? text);
  if (optionId === null) return { kind: 'hint', text: `choose one of ${optionList(approval)}` };
  if (optionId !== 'result') return { kind: 'answer', approval, answer: { optionId, chatId } };
  const words = result?.[2];
  if (words === undefined) return { kind: 'hint', text: `write the result behind the number: ${text} RESULT` };
  return { kind: 'answer', approval, answer: { optionId, chatId, text: words } };
}

/** Where own words are welcome, every text but a number of an option is the answer. */
function readAnswer({ approval, question }: Asked, text: string): Reading | { given: Given } {
  const skip = SKIP.exec(text);
  if (skip) return { kind: 'answer', approval, answer: noTo(approval, skip[1]) };
  const given = (optionIds: string[], words?: string) => ({
    given: { questionId: question.id, optionIds, ...(words === undefined ? {} : { text: words }) },
  });
  const numbered = NUMBER.test(text) ? optionShown(question, text) : null;
  if (numbered !== null) return given([numbered]);
  if (takesWords(question)) return given([], text);
  if (NUMBER.test(text)) return { kind: 'hint', text: `choose one of ${optionList(question)}` };
  const letter = /^[yn]$/i.test(text) ? optionShown(question, text) : null;
  if (letter !== null) return given([letter]);
  const refused = NO.exec(text);
  if (refused) return { kind: 'answer', approval, answer: noTo(approval, refused[1]) };
  return /^y$/i.test(text) ? { kind: 'hint', text: `choose one of ${optionList(question)}` } : { kind: 'message' };
}

/** What the prompt of a question takes, in a few words. */
export function keysOf({ approval, question }: Pick<Asked, 'approval' | 'question'>): string {
  const count = question.options.length;
  const numbers = count === 0 ? [] : [count === 1 ? '1' : `1-${count}`];
  const has = (id: string) => question.options.some((option) => option.id === id);
  if (approval.kind === 'ask_user' && takesWords(question)) return [...numbers, 'your words', '/skip'].join(', ');
  const result = approval.kind === 'unknown_outcome' && has('result');
  return [...(has('yes') ? ['y'] : []), 'n', 'n REASON', ...numbers, ...(result ? ['3 RESULT'] : [])].join(', ');
}
