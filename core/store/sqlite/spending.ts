import type { Amount, Granted } from '../../ports.ts';
import type { Usage } from '../../protocol/entities.ts';
import type { ChatRow } from './rows.ts';
import type { Session } from './session.ts';

/** What a turn's row gains; `usedValues` fills it. */
export const ADD_USED = `input_tokens = input_tokens + ?, output_tokens = output_tokens + ?, cached_tokens = cached_tokens + ?,
  reasoning_tokens = reasoning_tokens + ?, usd = usd + ?, calls = calls + ?, estimated = estimated + ?`;

export const usedValues = (used: Usage): number[] => [
  used.inputTokens,
  used.outputTokens,
  used.cachedTokens,
  used.reasoningTokens,
  used.usd,
  used.calls,
  used.estimated ? 1 : 0,
];

/** What counts against a budget. */
export const amountOf = (used: Usage): Amount => ({ tokens: used.inputTokens + used.outputTokens, usd: used.usd });

/** Adds to a turn and its chat, inside a transaction; the world's part goes with `append`. */
export function countUsed({ run }: Session, chat: ChatRow, turn: string, used: Usage): void {
  if (used.calls === 0) return;
  const { tokens, usd } = amountOf(used);
  run(`update turns set ${ADD_USED} where id = ?`, ...usedValues(used), turn);
  run('update chats set spent_tokens = spent_tokens + ?, spent_usd = spent_usd + ? where id = ?', tokens, usd, chat.id);
}

/** What `continue` has added so far to the budget of a chat and of its world. */
export function grantedSoFar({ one }: Session, chat: ChatRow): Granted {
  const world = one<Amount>(
    'select granted_tokens as tokens, granted_usd as usd from worlds where id = ?',
    chat.world_id,
  );
  return {
    chat: { tokens: chat.granted_tokens, usd: chat.granted_usd },
    world: world ?? { tokens: 0, usd: 0 },
  };
}

/** Adds to the budgets, inside a transaction; the chat's row is written by its book. */
export function addGrant({ run }: Session, chat: ChatRow, grant: Granted): void {
  chat.granted_tokens += grant.chat.tokens;
  chat.granted_usd += grant.chat.usd;
  if (grant.world.tokens === 0 && grant.world.usd === 0) return;
  run(
    'update worlds set granted_tokens = granted_tokens + ?, granted_usd = granted_usd + ? where id = ?',
    grant.world.tokens,
    grant.world.usd,
    chat.world_id,
  );
}
