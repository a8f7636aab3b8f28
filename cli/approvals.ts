import { type Approval, Remember } from '../core/protocol/entities.ts';
import { AppError } from '../core/protocol/errors.ts';
import type { AnswerApproval } from '../core/protocol/requests.ts';
import { answerWith, noTo, optionShown, takesWords } from './approval-answer.ts';
import { renderApprovals, renderCard, renderOutcome, renderQuestion } from './approval-card.ts';
import { type Client, createClient } from './client.ts';
import { type ConnectFlags, connect } from './connect.ts';
import { followChat } from './follow.ts';
import { CommandError, ExitCode, type Io, line, printJson, styleFor } from './io.ts';
import { createLog } from './log.ts';
import type { Product } from './product.ts';
import { createRoomView } from './room-view.ts';
import { safeName, safeText } from './safe-text.ts';

export interface ApprovalFlags extends ConnectFlags {
  json?: boolean;
  verbose?: boolean;
  world?: string;
  status?: string;
  text?: string;
  remember?: string;
  answer?: string[];
  skip?: boolean;
}

export type ApprovalCommand = 'list' | 'show' | 'answer';

const STATUSES: readonly Approval['status'][] = ['pending', 'answered', 'denied', 'expired', 'cancelled'];
/** How long a data directory stays open for what an answer sets going. */
const GO_ON_MS = 10 * 60_000;

/** `parley approvals …`: what waits for a person, and the decision. */
export async function approvals(
  product: Product,
  io: Io,
  command: ApprovalCommand,
  ids: readonly string[],
  flags: ApprovalFlags,
): Promise<ExitCode> {
  const status = oneOf(STATUSES, '--status', flags.status);
  const remember = oneOf(Remember.options, '--remember', flags.remember);
  const log = createLog(io, flags.verbose ? 'debug' : 'error', product.secrets);
  const client = createClient(await connect(flags, log, product.openLocal));
  try {
    const [id = '', option] = ids;
    switch (command) {
      case 'list':
        return await list(client, io, flags, status ?? 'pending');
      case 'show':
        return await show(client, io, flags, id);
      case 'answer':
        return await answer(client, io, flags, id, option, remember);
    }
  } finally {
    await client.close();
  }
}

function oneOf<T extends string>(known: readonly T[], flag: string, text: string | undefined): T | undefined {
  if (text === undefined) return undefined;
  const value = known.find((one) => one === text);
  if (value === undefined) throw new CommandError(`${flag} is one of ${known.join(', ')}, not ${text}`, ExitCode.usage);
  return value;
}

async function list(client: Client, io: Io, flags: ApprovalFlags, status: Approval['status']): Promise<ExitCode> {
  const answer = await client.approvals(flags.world, status);
  if (flags.json) printJson(io, answer);
  else if (answer.approvals.length === 0) line(io.stderr, status === 'pending' ? 'nothing waits' : `none is ${status}`);
  else line(io.stdout, renderApprovals(answer.approvals, styleFor(io.stdout)));
  return ExitCode.done;
}

async function show(client: Client, io: Io, flags: ApprovalFlags, id: string): Promise<ExitCode> {
  const approval = await find(client, flags.world, id);
  if (flags.json) {
    printJson(io, approval);
    return ExitCode.done;
  }
  const style = styleFor(io.stdout);
  const { kind, questions, args, worldId, chatId, createdAt } = approval;
  line(io.stdout, renderCard(approval, approval.agentId, null, style));
  if (kind === 'ask_user') {
    for (const [place, question] of questions.entries()) {
      line(io.stdout, renderQuestion(question, place, questions.length, style));
      if (questions.length > 1) line(io.stdout, style.dim(`  its id: ${safeName(question.id)}`));
    }
  } else if (args !== undefined) {
    line(io.stdout, `${style.dim('arguments:')} ${safeText(JSON.stringify(args))}`);
  }
  line(io.stdout, style.dim(safeName(`world ${worldId}, chat ${chatId}, asked ${createdAt}`)));
  line(io.stdout, renderOutcome(approval, style));
  return ExitCode.done;
}

async function answer(
  client: Client,
  io: Io,
  flags: ApprovalFlags,
  id: string,
  option: string | undefined,
  remember: Remember | undefined,
): Promise<ExitCode> {
  const approval = await find(client, flags.world, id);
  const body = { ...decision(approval, option, flags), ...(remember === undefined ? {} : { remember }) };
  const goOn = client.isLocal ? await follow(client, io, approval, flags.json === true) : null;
  try {
    const answered = await client.answer(approval.worldId, approval.id, body);
    if (flags.json) printJson(io, answered);
    if (!answered.accepted) line(io.stderr, `parley: ${safeText(answered.reason ?? 'it was decided already')}`);
    line(io.stderr, renderOutcome(answered.approval, styleFor(io.stderr)));
    if (!answered.accepted) return ExitCode.failed;
    await goOn?.settle(AbortSignal.timeout(GO_ON_MS));
    return ExitCode.done;
  } finally {
    await goOn?.close();
  }
}

/** Nobody else runs the agents of a data directory that is open here: what they say next is shown until they are done. */
async function follow(client: Client, io: Io, { worldId, chatId }: Approval, isQuiet: boolean) {
  const [{ agents }, chat] = await Promise.all([client.world(worldId), client.chat(worldId, chatId)]);
  const names = new Map(agents.map(({ id, name }) => [String(id), name]));
  const view = createRoomView(isQuiet ? { ...io, stdout: io.stderr } : io, {
    nameOf: (agent) => names.get(agent) ?? agent,
    live: !isQuiet && io.stdout.isTTY === true,
  });
  return followChat(client, { world: worldId, chat: chatId, afterSeq: chat.lastSeq }, view);
}

function decision(approval: Approval, option: string | undefined, flags: ApprovalFlags): AnswerApproval {
  const ways = [option !== undefined || flags.text !== undefined, flags.answer !== undefined].filter(Boolean).length;
  if (flags.skip) {
    if (option !== undefined || flags.answer !== undefined) throw wrong('give --skip or an answer, not both');
    return noTo({ ...approval, options: [] }, flags.text);
  }
  if (ways === 2) throw wrong('give one option, or --answer for each question, not both');
  if (flags.answer !== undefined)
    return { chatId: approval.chatId, answers: flags.answer.map((one) => given(approval, one)) };
  const choice = answerWith(approval, option, flags.text);
  if (choice.ok) return choice.answer;
  throw wrong(approval.questions.length > 1 ? `${choice.hint}; give --answer QUESTION=OPTION for each` : choice.hint);
}

/** `QUESTION=OPTION`, or `QUESTION=some words` where the question takes words. */
function given({ questions }: Approval, pair: string): NonNullable<AnswerApproval['answers']>[number] {
  const at = pair.indexOf('=');
  const question = questions.find(({ id }) => id === pair.slice(0, Math.max(at, 0)));
  if (!question) {
    throw wrong(
      `--answer takes QUESTION=OPTION with a question of ${questions.map(({ id }) => id).join(', ')}, not ${pair}`,
    );
  }
  const word = pair.slice(at + 1);
  const optionId = question.options.find(({ id }) => id === word)?.id ?? optionShown(question, word);
  if (optionId !== null) return { questionId: question.id, optionIds: [optionId] };
  if (takesWords(question)) return { questionId: question.id, optionIds: [], text: word };
  throw wrong(`--answer: ${question.id} takes one of ${question.options.map(({ id }) => id).join(', ')}, not ${word}`);
}

const wrong = (message: string) => new CommandError(message, ExitCode.usage);

/** An approval of any state by its id alone, where no world is named. */
async function find(client: Client, world: string | undefined, id: string): Promise<Approval> {
  if (world !== undefined) return client.approval(world, id);
  const pending = (await client.approvals(undefined, 'pending')).approvals.find((approval) => approval.id === id);
  if (pending) return pending;
  for (const { id: candidate } of (await client.worlds()).worlds) {
    try {
      return await client.approval(candidate, id);
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'not_found') throw error;
    }
  }
  throw new CommandError(`there is no approval ${JSON.stringify(id)}: parley approvals list shows what waits`);
}
