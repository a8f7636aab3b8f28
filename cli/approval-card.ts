import type { Approval, Question } from '../core/protocol/entities.ts';
import { showInvisible } from '../core/safety/show-invisible.ts';
import type { Style } from './io.ts';
import { renderTable } from './render.ts';
import { safeName, safeText } from './safe-text.ts';

/** Foreign text behind a bar on every line, so that it cannot pass for a part of the card. */
function barred(text: string, style: Style): string {
  const lines = safeText(showInvisible(text)).split('\n');
  return lines.map((line) => `${style.dim('│')} ${line}`.trimEnd()).join('\n');
}

/** The whole of what is asked, the real effect first; `number` is its number in this conversation. */
export function renderCard(approval: Approval, agent: string, number: number | null, style: Style): string {
  const { kind, title, message, questions, expiresAt } = approval;
  const head = `approval ${number === null ? '' : `#${number} `}(${safeName(approval.id)}) from ${safeName(agent)}`;
  const first = questions[0];
  const isQuestion = kind === 'ask_user';
  return [
    style.warn(`${head}: ${isQuestion ? 'a question' : (approval.tool ?? kind)}`),
    ...(isQuestion && questions.length === 1 ? [] : [style.bold(safeName(title))]),
    ...(isQuestion ? [] : [barred(message, style)]),
    ...(expiresAt === undefined ? [] : [style.dim(`without an answer it is denied at ${safeName(expiresAt)}`)]),
    ...(isQuestion || first === undefined ? [] : [renderOptions(first, style)]),
  ].join('\n');
}

/** One question of `ask_user`, with its options by number. */
export function renderQuestion(question: Question, place: number, of: number, style: Style): string {
  const head = `${safeName(question.header)}${of === 1 ? '' : ` (${place + 1} of ${of})`}`;
  const options = question.options.length === 0 ? [] : [renderOptions(question, style)];
  return [style.bold(head), barred(question.question, style), ...options].join('\n');
}

function renderOptions({ options }: Question, style: Style): string {
  const lines = options.map(({ label, description }, index) => {
    const more = description === undefined ? '' : ` ${style.dim(safeName(showInvisible(description)))}`;
    return `  ${index + 1}) ${safeName(showInvisible(label))}${more}`;
  });
  return lines.join('\n');
}

/** One line on how an approval ended; for one that still waits, that it does. */
export function renderOutcome(approval: Approval, style: Style): string {
  const { status, resolution, title } = approval;
  const what = safeName(title);
  const by = resolution === undefined ? '' : ` by ${safeName(resolution.by)}`;
  const words = resolution?.text === undefined ? '' : `: ${safeName(resolution.text)}`;
  switch (status) {
    case 'pending':
      return style.warn(`still waiting: ${what}`);
    case 'answered':
      return style.good(`${chosen(approval)}${by}: ${what}`);
    case 'denied':
      return style.warn(`denied${by}${words}: ${what}`);
    case 'expired':
      return style.warn(`denied, nobody answered in time: ${what}`);
    case 'cancelled':
      return style.warn(`cancelled: ${what}`);
  }
}

/** Labels and words that were chosen, in the order of the questions. */
function chosen({ resolution, questions, options, kind }: Approval): string {
  if (kind !== 'ask_user') {
    const option = options.find(({ id }) => id === resolution?.optionId);
    return option?.id === 'yes' ? 'allowed' : safeName(option?.label ?? 'answered');
  }
  const answers = (resolution?.answers ?? []).map(({ questionId, optionIds, text }) => {
    const question = questions.find(({ id }) => id === questionId);
    const labels = optionIds.map((id) => question?.options.find((option) => option.id === id)?.label ?? id);
    return safeName([...labels, ...(text === undefined ? [] : [text])].join(', '));
  });
  return `answered ${answers.join('; ')}`;
}

export function renderApprovals(approvals: readonly Approval[], style: Style): string {
  const rows = approvals.map((a) => [a.id, a.worldId, a.chatId, a.agentId, a.status, a.createdAt, a.title]);
  return renderTable(['APPROVAL', 'WORLD', 'CHAT', 'AGENT', 'STATUS', 'ASKED', 'TITLE'], rows, style);
}
