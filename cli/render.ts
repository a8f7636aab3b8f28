import type { IgnoreReason, Message, Routing, WakeReason } from '../core/protocol/entities.ts';
import type { Style } from './io.ts';
import { safeName, safeText } from './safe-text.ts';

const WOKE: Record<WakeReason, string> = {
  address: 'addressed',
  main_agent: 'main agent',
  broadcast: 'everyone',
  all: 'everyone',
  auto_reply: 'reply',
  world_tag: 'addressed',
  transition: 'hand-over',
  delegation: 'delegated',
  schedule: 'schedule',
  forward: 'forwarded',
};

const IGNORED: Record<IgnoreReason, string> = {
  reference: 'only mentioned',
  code: 'inside code',
  quote: 'inside a quote',
  unknown: 'no such agent',
  self: 'the sender itself',
  inactive: 'inactive',
  duplicate: 'already addressed',
  empty_address: 'nothing was said to it',
  broadcast_refused: 'agents may not address everyone here',
  limit: 'held back by a limit',
  stopped: 'beside a stop tag',
};

/** Whom a message woke and why, and what it did not; null where there is nothing worth a line. */
export function renderReceipt(routing: Routing, style: Style): string | null {
  const woke = routing.woke.map(({ agentId, reason }) => `${safeName(agentId)} (${WOKE[reason]})`);
  const ignored = routing.ignored.map(({ text, reason, suggestion }) => {
    const hint = suggestion === undefined ? '' : `; did you mean @${safeName(suggestion)}?`;
    return `${safeName(text)} (${IGNORED[reason]}${hint})`;
  });
  const parts = [
    ...(woke.length === 0 ? [] : [`→ ${woke.join(', ')}`]),
    ...(ignored.length === 0 ? [] : [`not woken: ${ignored.join(', ')}`]),
  ];
  return parts.length === 0 ? null : style.dim(parts.join(' · '));
}

export function renderAuthor(sender: Pick<Message['sender'], 'id' | 'name'>, style: Style): string {
  return style.author(sender.id, safeName(sender.name));
}

/** A whole message with its author; text that was cut short says so. */
export function renderMessage(message: Message, style: Style): string {
  return `${renderAuthor(message.sender, style)}: ${safeText(message.content)}${renderStatus(message, style)}`;
}

export function renderStatus(message: Pick<Message, 'status'>, style: Style): string {
  return message.status === 'complete' ? '' : ` ${style.warn(`[${message.status}]`)}`;
}

/** A notice of the system: limits in yellow with the way on, failures in red. */
export function renderNotice(message: Message, style: Style): string {
  const text = safeText(message.content);
  if (message.notice?.kind === 'limit') return style.warn(text);
  return message.notice?.kind === 'turn_failed' ? style.bad(text) : style.dim(text);
}

/** Columns as wide as their widest cell; cells are one line each. */
export function renderTable(head: readonly string[], rows: readonly (readonly string[])[], style: Style): string {
  const cells = rows.map((row) => row.map((cell) => safeName(cell)));
  const widths = head.map((title, i) => Math.max(title.length, ...cells.map((row) => (row[i] ?? '').length)));
  const layOut = (row: readonly string[]) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd();
  return [style.dim(layOut(head)), ...cells.map(layOut)].join('\n');
}
