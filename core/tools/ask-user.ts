import { z } from 'zod';
import type { Tool } from '../ports.ts';
import type { Question } from '../protocol/entities.ts';
import { showInvisible } from '../safety/show-invisible.ts';

const Option = z.union([
  z
    .string()
    .min(1)
    .max(1000)
    .transform((label) => ({ label })),
  z.strictObject({
    id: z.string().min(1).max(64).optional(),
    label: z.string().min(1).max(1000),
    description: z.string().max(8192).optional(),
  }),
]);
const Args = z.strictObject({
  questions: z
    .array(
      z.strictObject({
        id: z.string().min(1).max(64).optional(),
        header: z.string().max(100).optional(),
        question: z.string().min(1).max(8192),
        options: z.array(Option).max(50).default([]),
        freeText: z.boolean().optional(),
      }),
    )
    .min(1)
    .max(10),
});

/** Asks a person one or more questions; the turn goes on with the answer. */
export function askUserTool(): Tool {
  return {
    name: 'ask_user',
    description:
      'Asks the people in the room a question and waits for the answer. Use it only when you cannot go on without it. Give `options` where the answers are known; set `freeText` where own words are welcome. Without options the answer is free text.',
    parameters: {
      type: 'object',
      properties: {
        questions: {
          type: 'array',
          minItems: 1,
          maxItems: 10,
          items: {
            type: 'object',
            properties: {
              id: { type: 'string' },
              header: { type: 'string', description: 'a word or two' },
              question: { type: 'string' },
              options: {
                type: 'array',
                items: {
                  type: 'object',
                  properties: { id: { type: 'string' }, label: { type: 'string' }, description: { type: 'string' } },
                  required: ['label'],
                },
              },
              freeText: { type: 'boolean' },
            },
            required: ['question'],
          },
        },
      },
      required: ['questions'],
      additionalProperties: false,
    },
    effect: 'read',
    asks: 'question',
    parse(input) {
      const parsed = Args.safeParse(input);
      if (!parsed.success) {
        const issue = parsed.error.issues[0];
        const content = `The arguments of ask_user are not right: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'invalid'}`;
        return { ok: false, result: { content, isError: true } };
      }
      const questions = parsed.data.questions.map((one, index): Question => {
        const options = one.options.map((option, place) => ({
          id: 'id' in option && option.id !== undefined ? option.id : `o${place + 1}`,
          label: showInvisible(option.label),
          ...('description' in option && option.description !== undefined
            ? { description: showInvisible(option.description) }
            : {}),
        }));
        return {
          id: one.id ?? `q${index + 1}`,
          header: showInvisible(one.header ?? 'Question'),
          question: showInvisible(one.question),
          options,
          freeText: one.freeText ?? options.length === 0,
        };
      });
      const hasDoubles = (ids: readonly string[]) => new Set(ids).size !== ids.length;
      if (
        hasDoubles(questions.map(({ id }) => id)) ||
        questions.some(({ options }) => hasDoubles(options.map(({ id }) => id)))
      ) {
        return {
          ok: false,
          result: { content: 'The ids of questions, and of the options of one question, must differ.', isError: true },
        };
      }
      return { ok: true, args: { questions } };
    },
    async describe(args, context) {
      const questions = args['questions'] as Question[];
      const title =
        questions.length === 1
          ? (questions[0]?.question ?? '')
          : `${context.agent.name} has ${questions.length} questions`;
      return { ok: true, question: { title, message: `${context.agent.name} asks`, questions } };
    },
    async run() {
      throw new Error('ask_user is answered by a person, never run');
    },
  };
}
