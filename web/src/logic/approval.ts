import type { Approval, Question } from '../../../core/protocol/entities.ts';
import type { AnswerApproval } from '../../../core/protocol/requests.ts';

/** What a person has chosen so far, by question. */
export type Choices = Readonly<Record<string, { readonly optionId: string | null; readonly text: string }>>;

const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/gu;

/** Characters that show nothing or turn the writing around become `\u{…}`: what is decided on is what is seen. */
export const visible = (text: string): string =>
  text.replace(INVISIBLE, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);

export const argsText = (approval: Approval): string => visible(JSON.stringify(approval.args ?? {}, null, 2));

/** The questions of an `ask_user` with the numbers of their options, which count through; 0 has no key. */
export function numbered(questions: readonly Question[]) {
  let count = 0;
  return questions.map((question) => ({
    question,
    options: question.options.map((option) => {
      count += 1;
      return { ...option, key: count <= 9 ? count : 0 };
    }),
  }));
}

/** The answer to all questions, or the id of the first that has none. */
export function answersFrom(
  questions: readonly Question[],
  choices: Choices,
): { readonly answers: NonNullable<AnswerApproval['answers']> } | { readonly missing: string } {
  const answers: NonNullable<AnswerApproval['answers']> = [];
  for (const { id } of questions) {
    const { optionId = null, text = '' } = choices[id] ?? {};
    if (optionId === null && text.trim() === '') return { missing: id };
    answers.push({ questionId: id, optionIds: optionId === null ? [] : [optionId], ...(text.trim() ? { text } : {}) });
  }
  return { answers };
}

/** Who decided what, in one line: `Owner allowed: Create the agent Scout`. */
export function decisionOf(approval: Approval): string {
  const { status, resolution, kind } = approval;
  const title = visible(approval.title);
  const by = visible(resolution?.by ?? 'somebody');
  const words = resolution?.text ? ` (${visible(resolution.text)})` : '';
  switch (status) {
    case 'pending':
      return `Waiting: ${title}`;
    case 'expired':
      return `Denied, nobody answered in time: ${title}`;
    case 'cancelled':
      return `Cancelled: ${title}`;
    case 'denied':
      return `${by} ${kind === 'ask_user' ? 'skipped' : 'denied'}: ${title}${words}`;
    case 'answered':
      if (kind === 'ask_user') return `${by} answered: ${chosen(approval)}`;
      if (kind === 'unknown_outcome') return `${by} chose ${optionLabel(approval)}: ${title}${words}`;
      return `${by} allowed: ${title}`;
  }
}

const optionLabel = ({ options, resolution }: Approval): string => {
  const option = options.find(({ id }) => id === resolution?.optionId);
  return `“${visible(option?.label ?? resolution?.optionId ?? '')}”`;
};

function chosen({ questions, resolution }: Approval): string {
  const parts = (resolution?.answers ?? []).flatMap(({ questionId, optionIds, text }) => {
    const options = questions.find(({ id }) => id === questionId)?.options ?? [];
    const labels = optionIds.map((id) => options.find((option) => option.id === id)?.label ?? id);
    return text ? [...labels, text] : labels;
  });
  return visible(parts.join(', '));
}
