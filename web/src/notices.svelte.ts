/** What went wrong, told to the person: nothing is swallowed. */
export interface PageNotice {
  readonly id: number;
  readonly text: string;
}

const SHOWN_MS = 9_000;
const MAX_SHOWN = 4;
let next = 0;

class Notices {
  list = $state.raw<readonly PageNotice[]>([]);

  add(text: string): void {
    const notice = { id: next++, text };
    this.list = [...this.list.filter((old) => old.text !== text), notice].slice(-MAX_SHOWN);
    setTimeout(() => this.remove(notice.id), SHOWN_MS);
  }

  remove(id: number): void {
    this.list = this.list.filter((notice) => notice.id !== id);
  }
}

export const notices = new Notices();

/** For every call whose failure has no better place. */
export function reportError(error: unknown): void {
  if (error instanceof DOMException && error.name === 'AbortError') return;
  console.error(error);
  notices.add(error instanceof Error ? error.message : String(error));
}

/** Runs what an event handler starts; a failure is shown. */
export function background(work: Promise<unknown>): void {
  work.catch(reportError);
}

class Announcer {
  /** Read out by screen readers, never seen. */
  text = $state('');
  say(text: string): void {
    // The same words twice in a row would not be read again.
    this.text = this.text === text ? `${text}\u00a0` : text;
  }
}

export const announcer = new Announcer();
