import type { Usage } from '../../../core/protocol/entities.ts';

/** `Writer`, `Writer and Critic`, `Writer, Critic and 3 more`. */
export function listOf(names: readonly string[], max = 3): string {
  if (names.length <= 1) return names[0] ?? '';
  if (names.length > max) return `${names.slice(0, max - 1).join(', ')} and ${names.length - max + 1} more`;
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const day = new Intl.DateTimeFormat(undefined, { weekday: 'long', day: 'numeric', month: 'long' });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'medium' });

export const timeOf = (iso: string): string => clock.format(new Date(iso));
export const fullTimeOf = (iso: string): string => full.format(new Date(iso));

export function dayOf(iso: string, now: Date): string {
  const date = new Date(iso);
  const yesterday = new Date(now);
  yesterday.setDate(now.getDate() - 1);
  if (date.toDateString() === now.toDateString()) return 'Today';
  return date.toDateString() === yesterday.toDateString() ? 'Yesterday' : day.format(date);
}

/** `1.2k tokens`, `1.2k tokens · $0.03`; '' where nothing was used. */
export function usageOf(usage: Usage | undefined): string {
  if (!usage || usage.calls === 0) return '';
  const tokens = usage.inputTokens + usage.outputTokens;
  const count =
    tokens < 1000 ? `${tokens}` : tokens < 1e6 ? `${(tokens / 1000).toFixed(1)}k` : `${(tokens / 1e6).toFixed(1)}M`;
  const money = usage.usd === 0 ? '' : ` · $${usage.usd < 0.01 ? usage.usd.toFixed(4) : usage.usd.toFixed(2)}`;
  return `${count} tokens${money}`;
}

export function sizeOf(characters: number): string {
  return characters < 1000 ? `${characters} characters` : `${Math.round(characters / 1000)} k characters`;
}
