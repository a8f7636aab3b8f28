import type { Directory } from '../ports.ts';
import { type ChatWindow, emptyWindow, extendWindow, type WindowLimits } from './context.ts';

const PAGE = 500;

/** Keeps the newest part of a chat while it is at work; each call reads what has been added. */
export interface WindowReader {
  /**
   * The window as committed now; what was read at an older revision of the chat is void. One reader at a time; a read
   * that fails spoils none that follows.
   */
  read(rev: number): Promise<ChatWindow>;
}

export function openWindowReader(store: Directory, chat: string, limits: WindowLimits): WindowReader {
  const window = emptyWindow();
  let windowRev = 0;
  let last: Promise<unknown> = Promise.resolve();

  async function fill(rev: number): Promise<ChatWindow> {
    if (rev > windowRev) {
      windowRev = rev;
      Object.assign(window, emptyWindow());
    }
    if (window.lastSeq === 0) {
      // The newest part alone: what is older than a full window is never read.
      const newest = await store.messages(chat, { limit: Math.min(PAGE, limits.messages) });
      extendWindow(window, newest.messages, limits);
    } else {
      for (;;) {
        const { messages } = await store.messages(chat, { after: window.lastSeq, limit: PAGE });
        extendWindow(window, messages, limits);
        if (messages.length < PAGE) break;
      }
    }
    return { ...window, entries: window.entries.slice() };
  }
  return {
    read(rev) {
      const reading = last.then(() => fill(rev));
      last = reading.catch(() => {}); // who asked for it has the error
      return reading;
    },
  };
}
