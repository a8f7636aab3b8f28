import { z } from 'zod';
import type { Parley } from '../../core/parley.ts';
import { Approval } from '../../core/protocol/entities.ts';
import { AnswerApproval, AnsweredApproval, ApprovalList, GrantList, RuleList } from '../../core/protocol/requests.ts';
import { endpoint, type ServerApp } from '../endpoint.ts';
import { ANSWER_PATH } from '../idempotency.ts';

const tag = 'Approvals';
const Status = Approval.shape.status;

/** What waits for a person's decision, and the decision. */
export function approvalRoutes(app: ServerApp, parley: Parley): void {
  endpoint(app, {
    method: 'get',
    path: '/api/v1/approvals',
    summary: 'What waits for a person in all worlds, oldest first',
    tag,
    query: z.strictObject({ status: Status.default('pending') }),
    answer: { status: 200, schema: ApprovalList },
    run: async ({ actor, query }) => ({ approvals: await parley.listApprovals(actor, undefined, query.status) }),
  });
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds/:world/approvals',
    summary: 'List the approvals of a world, oldest first',
    tag,
    query: z.strictObject({ status: Status.optional().describe('of every status where none is given') }),
    answer: { status: 200, schema: ApprovalList },
    run: async ({ actor, ids, query }) => ({ approvals: await parley.listApprovals(actor, ids.world, query.status) }),
  });
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds/:world/approvals/:approval',
    summary: 'Read an approval',
    tag,
    answer: { status: 200, schema: Approval },
    run: ({ actor, ids }) => parley.getApproval(actor, ids.world, ids.approval),
  });
  endpoint(app, {
    method: 'post',
    path: ANSWER_PATH,
    summary: 'Decide; the first valid answer wins',
    description:
      'Give an `optionId`, `answers` to every question, or `skipped: true`, which is a no. `remember` keeps a yes for the same tool and the same arguments.',
    tag,
    body: AnswerApproval,
    answer: { status: 200, schema: AnsweredApproval },
    creates: true,
    conflict: {
      is: ({ accepted }) => !accepted,
      description: '`accepted` is false: it was decided before, as `reason` and `approval` tell',
    },
    run: ({ actor, ids, body, idem }) => parley.answerApproval(actor, ids.world, ids.approval, body, idem),
  });
}

/** What runs without asking, or never: remembered answers and rules. */
export function permissionRoutes(app: ServerApp, parley: Parley): void {
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds/:world/grants',
    summary: 'List the remembered answers',
    tag,
    answer: { status: 200, schema: GrantList },
    run: async ({ actor, ids }) => ({ grants: await parley.listGrants(actor, ids.world) }),
  });
  endpoint(app, {
    method: 'delete',
    path: '/api/v1/worlds/:world/grants/:grant',
    summary: 'Forget a remembered answer; the next such call asks again',
    tag,
    run: ({ actor, ids }) => parley.removeGrant(actor, ids.world, ids.grant),
  });
  endpoint(app, {
    method: 'get',
    path: '/api/v1/worlds/:world/rules',
    summary: 'Read the rules for tool calls',
    tag,
    answer: { status: 200, schema: RuleList },
    run: async ({ actor, ids }) => ({ rules: await parley.rules(actor, ids.world) }),
  });
  endpoint(app, {
    method: 'put',
    path: '/api/v1/worlds/:world/rules',
    summary: 'Replace the rules: deny goes over ask, ask over allow',
    tag,
    body: RuleList,
    answer: { status: 200, schema: RuleList },
    run: async ({ actor, ids, body }) => ({ rules: await parley.setRules(actor, ids.world, body.rules) }),
  });
}
