import type { Actor, Approvals, Clock, Idempotency, Ids, Tool } from '../ports.ts';
import type { Approval, Grant, Question, Resolution, Rule } from '../protocol/entities.ts';
import { AppError } from '../protocol/errors.ts';
import type { StoredEvent } from '../protocol/events.ts';
import type { GrantId } from '../protocol/ids.ts';
import type { AnswerApproval, AnsweredApproval } from '../protocol/requests.ts';
import { requireRole } from './access.ts';
import type { Engine } from './engine.ts';
import type { Expiry } from './expiry.ts';

const LIST_LIMIT = 500;

export interface DecisionDeps {
  store: Approvals;
  engine: Engine;
  clock: Clock;
  ids: Ids;
  expiry: Expiry;
  tools: readonly Tool[];
  publish(events: readonly StoredEvent[]): void;
}

/** What people decide: approvals, remembered grants, rules. Only an authenticated person's call decides; text never does. */
export function openDecisions({ store, engine, clock, ids, expiry, tools, publish }: DecisionDeps) {
  async function need(world: string, id: string): Promise<Approval> {
    const approval = await store.getApproval(world, id);
    if (!approval)
      throw new AppError(
        'not_found',
        `there is no approval ${JSON.stringify(id)} in the world ${JSON.stringify(world)}`,
      );
    return approval;
  }

  return {
    async listApprovals(
      _actor: Actor,
      world: string | undefined,
      status?: Approval['status'],
      chat?: string,
    ): Promise<Approval[]> {
      if (world !== undefined) await store.rules(world);
      return store.listApprovals(
        {
          ...(world === undefined ? {} : { world }),
          ...(chat === undefined ? {} : { chat }),
          ...(status === undefined ? {} : { status }),
        },
        LIST_LIMIT,
      );
    },
    getApproval: (_actor: Actor, world: string, id: string) => need(world, id),

    async answerApproval(
      actor: Actor,
      world: string,
      id: string,
      input: AnswerApproval,
      idem?: Idempotency,
    ): Promise<AnsweredApproval> {
      requireRole(actor, 'member');
      const approval = await need(world, id);
      if (input.chatId !== undefined && input.chatId !== approval.chatId) {
        throw new AppError(
          'invalid',
          `chatId: the approval belongs to another chat than ${JSON.stringify(input.chatId)}`,
        );
      }
      const decision = decisionOf(approval, input, actor, new Date(clock.now()).toISOString());
      const grant = grantOf(approval, input, actor, decision.status, ids, tools);
      const changed = await store.decide(world, id, { ...decision, ...(grant ? { grant } : {}) }, idem);
      if (!changed) {
        // Refused because it is decided, or because its time is over and nothing has said so yet.
        await expiry.endIfDue(await need(world, id));
        const final = await need(world, id);
        return { accepted: false, reason: `the approval was decided already: ${final.status}`, approval: final };
      }
      publish(changed.events);
      engine.wake(approval.chatId);
      return { accepted: true, approval: changed.value };
    },

    async listGrants(_actor: Actor, world: string): Promise<Grant[]> {
      await store.rules(world);
      return store.listGrants(world);
    },
    async removeGrant(actor: Actor, world: string, id: string): Promise<void> {
      requireRole(actor, 'member');
      if (!(await store.removeGrant(world, id)))
        throw new AppError('not_found', `there is no grant ${JSON.stringify(id)} in this world`);
    },
    rules: (_actor: Actor, world: string): Promise<Rule[]> => store.rules(world),
    async setRules(actor: Actor, world: string, rules: readonly Rule[]): Promise<Rule[]> {
      requireRole(actor, 'owner');
      await store.setRules(world, rules);
      return store.rules(world);
    },
  };
}

function decisionOf(
  approval: Approval,
  input: AnswerApproval,
  actor: Actor,
  at: string,
): { status: 'answered' | 'denied'; resolution: Resolution } {
  const text = input.text === undefined || input.text === '' ? {} : { text: input.text };
  const base = { by: actor.name, at, ...text };
  if (input.skipped) return { status: 'denied', resolution: { ...base, optionId: null, reason: 'user_denied' } };
  if (approval.kind === 'ask_user') {
    const answers = answersOf(approval.questions, input);
    return { status: 'answered', resolution: { ...base, optionId: answers[0]?.optionIds[0] ?? null, answers } };
  }
  const optionId = input.optionId ?? input.answers?.[0]?.optionIds[0];
  if (optionId === undefined)
    throw new AppError('invalid', `optionId is missing; choose one of ${optionNames(approval.options)}`);
  if (!approval.options.some((option) => option.id === optionId)) {
    throw new AppError(
      'invalid',
      `optionId: there is no option ${JSON.stringify(optionId)}; choose one of ${optionNames(approval.options)}`,
    );
  }
  if (approval.kind === 'unknown_outcome' && optionId === 'result' && input.text === undefined) {
    throw new AppError('invalid', 'text: write the result of the call');
  }
  if (optionId === 'no') return { status: 'denied', resolution: { ...base, optionId, reason: 'user_denied' } };
  return { status: 'answered', resolution: { ...base, optionId } };
}

const optionNames = (options: Question['options']) => options.map((option) => option.id).join(', ');

/** Every question of an `ask_user` gets an answer with options that it has, or words where it takes words. */
function answersOf(questions: readonly Question[], input: AnswerApproval): NonNullable<Resolution['answers']> {
  const first = questions[0];
  if (!first) throw new AppError('invalid', 'the approval has no question');
  const given =
    input.answers ??
    (input.optionId === undefined && input.text === undefined
      ? []
      : [
          {
            questionId: first.id,
            optionIds: input.optionId === undefined ? [] : [input.optionId],
            ...(input.text === undefined ? {} : { text: input.text }),
          },
        ]);
  for (const answer of given) {
    const question = questions.find((one) => one.id === answer.questionId);
    if (!question) throw new AppError('invalid', `answers: there is no question ${JSON.stringify(answer.questionId)}`);
    const wrong = answer.optionIds.find((id) => !question.options.some((option) => option.id === id));
    if (wrong !== undefined) {
      throw new AppError(
        'invalid',
        `answers: the question ${question.id} has no option ${JSON.stringify(wrong)}; choose from ${optionNames(question.options)}`,
      );
    }
    if (answer.text !== undefined && !question.freeText && question.options.length > 0) {
      throw new AppError('invalid', `answers: the question ${question.id} takes one of its options, no text`);
    }
  }
  const open = questions.find(
    (question) =>
      !given.some(
        (answer) => answer.questionId === question.id && (answer.optionIds.length > 0 || (answer.text ?? '') !== ''),
      ),
  );
  if (open) throw new AppError('invalid', `answers: the question ${JSON.stringify(open.id)} has no answer`);
  return given.map(({ questionId, optionIds, text }) => ({
    questionId,
    optionIds,
    ...(text === undefined ? {} : { text }),
  }));
}

/** A remembered yes. Bound to the tool and its exact arguments, never wider than the call that was shown. */
function grantOf(
  approval: Approval,
  input: AnswerApproval,
  actor: Actor,
  status: 'answered' | 'denied',
  ids: Ids,
  tools: readonly Tool[],
): Omit<Grant, 'createdAt'> | null {
  const scope = input.remember ?? 'once';
  if (scope === 'once') return null;
  const tool = tools.find((one) => one.name === approval.tool);
  if (approval.kind !== 'tool' || !tool || tool.asks !== 'by-permission' || approval.argsHash === undefined) {
    throw new AppError('invalid', `remember: ${approval.tool ?? approval.kind} asks every time`);
  }
  if (status !== 'answered')
    throw new AppError('invalid', 'remember: only a yes can be remembered; make a rule to deny');
  return {
    id: ids.make('g') as GrantId,
    worldId: approval.worldId,
    scope,
    chatId: scope === 'chat' ? approval.chatId : null,
    agentId: scope === 'world' ? null : approval.agentId,
    tool: tool.name,
    argsHash: approval.argsHash,
    label: approval.title,
    by: actor.name,
  };
}
