import type { Approval, Question } from '../core/protocol/entities.ts';
import type { AnswerApproval } from '../core/protocol/requests.ts';

export type Choice = { ok: true; answer: AnswerApproval } | { ok: false; hint: string };

const hint = (text: string): Choice => ({ ok: false, hint: text });

/** A yes where one can be given as such; null for questions and unknown outcomes, which nobody can answer unseen. */
export function yesTo({ options, chatId }: Approval): AnswerApproval | null {
  return options.some(({ id }) => id === 'yes') ? { optionId: 'yes', chatId } : null;
}

/** A no with an optional reason; where there is no such option, a refusal to answer. */
export function noTo({ options, chatId, kind }: Approval, reason?: string): AnswerApproval {
  const text = reason === undefined || reason === '' ? {} : { text: reason };
  const hasNo = kind !== 'ask_user' && options.some(({ id }) => id === 'no');
  return hasNo ? { optionId: 'no', chatId, ...text } : { skipped: true, chatId, ...text };
}

/** An option by the number that the card shows, or by `y` and `n`; never by its id, which an agent may have chosen. */
export function optionShown({ options }: Pick<Question, 'options'>, word: string): string | null {
  if (/^[1-9]\d?$/.test(word)) return options[Number(word) - 1]?.id ?? null;
  const letter = /^y$/i.test(word) ? 'yes' : /^n$/i.test(word) ? 'no' : null;
  return options.find(({ id }) => id === letter)?.id ?? null;
}

/** An option by its id, else as it is shown. */
function optionOf(question: Question, word: string): string | null {
  return question.options.find(({ id }) => id === word)?.id ?? optionShown(question, word);
}

export function optionList({ options }: Pick<Question, 'options'>): string {
  return options.map(({ id }, index) => `${index + 1} or ${id}`).join(', ');
}

export function takesWords({ freeText, options }: Question): boolean {
  return freeText === true || options.length === 0;
}

/** The answer that one option and text make; approvals with several questions want `answers` instead. */
export function answerWith(approval: Approval, word: string | undefined, text: string | undefined): Choice {
  const { questions, chatId, kind } = approval;
  const question = questions[0];
  if (question === undefined) return hint('it has no question');
  if (questions.length > 1)
    return hint(`it has ${questions.length} questions: ${questions.map((q) => q.id).join(', ')}`);
  const words = text === undefined || text === '' ? {} : { text };
  if (word === undefined) {
    if (words.text === undefined) return hint(`choose one of ${optionList(question)}`);
    if (kind === 'ask_user' && takesWords(question)) return { ok: true, answer: { chatId, ...words } };
    return hint(`it takes one of its options: ${optionList(question)}`);
  }
  const optionId = optionOf(question, word);
  if (optionId === null)
    return hint(`there is no option ${JSON.stringify(word)}: ${optionList(question) || 'own words only'}`);
  if (kind === 'unknown_outcome' && optionId === 'result' && words.text === undefined) {
    return hint('write the result of the call as well');
  }
  return { ok: true, answer: { optionId, chatId, ...words } };
}
