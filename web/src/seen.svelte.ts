/** How far each chat has been read, kept in the browser and shared by its tabs. */
const KEY = 'parley.seen';
const MAX_CHATS = 500;

type SeenSeqs = Readonly<Record<string, number>>;

function read(stored: string | null): SeenSeqs {
  try {
    const value: unknown = JSON.parse(stored ?? '{}');
    if (value === null || typeof value !== 'object') return {};
    return Object.fromEntries(
      Object.entries(value).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
    );
  } catch {
    // Somebody else's text under our key; it is written over with the next message.
    return {};
  }
}

class Seen {
  seqs = $state.raw<SeenSeqs>(read(localStorage.getItem(KEY)));

  constructor() {
    addEventListener('storage', (event) => {
      if (event.key === KEY) this.seqs = read(event.newValue);
    });
  }

  /** Messages after the last one that was seen; none in a chat that was never opened here. */
  unread(chatId: string, lastSeq: number): number {
    const seen = this.seqs[chatId];
    return seen === undefined ? 0 : Math.max(0, lastSeq - seen);
  }

  mark(chatId: string, seq: number): void {
    if (this.seqs[chatId] === seq) return;
    const { [chatId]: _, ...others } = this.seqs;
    this.seqs = Object.fromEntries([...Object.entries(others).slice(1 - MAX_CHATS), [chatId, seq]]);
    localStorage.setItem(KEY, JSON.stringify(this.seqs));
  }
}

export const seen = new Seen();
