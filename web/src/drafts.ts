/** What was typed and not sent, per chat, as long as the tab lives. */
export interface Draft {
  readonly text: string;
  /** The key of a send that failed: sending the same text again is the same message. */
  readonly key: string | null;
}

const EMPTY: Draft = { text: '', key: null };
const PREFIX = 'parley.draft.';
const drafts = new Map<string, Draft>();

export function draftOf(chatId: string): Draft {
  const known = drafts.get(chatId);
  if (known) return known;
  const text = sessionStorage.getItem(PREFIX + chatId);
  return text === null ? EMPTY : { text, key: null };
}

export function keepDraft(chatId: string, draft: Draft): void {
  drafts.set(chatId, draft);
  try {
    if (draft.text === '') sessionStorage.removeItem(PREFIX + chatId);
    else sessionStorage.setItem(PREFIX + chatId, draft.text);
  } catch {
    // The browser's store is full: the draft lives in memory.
  }
}
