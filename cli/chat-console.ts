import { clearLine, createInterface, cursorTo } from 'node:readline';
import type { Io, Style } from './io.ts';

/** A line with the key of what its prompt asked; null for an ordinary prompt. */
export interface Typed {
  text: string;
  asked: string | null;
}

/**
 * The lines of a conversation. On a terminal a line counts for what its prompt showed when it was entered; lines of a
 * pipe count for what is shown when their turn comes.
 */
export function openConsole(io: Io, style: Style, isTerminal: boolean) {
  const input = createInterface({
    input: io.stdin,
    ...(isTerminal ? { output: io.stdout } : {}),
    terminal: isTerminal,
  });
  // From the beginning, so that lines which come before the first is asked for are kept.
  const source = input[Symbol.asyncIterator]();
  const entered: (string | null)[] = [];
  let shown: string | null = null;
  let hasPrompt = false;
  let isVisible = false;
  let isOpen = true;

  input.on('line', () => {
    hasPrompt = false;
    isVisible = false;
    entered.push(shown);
    if (isTerminal) shown = null;
  });
  input.on('close', () => {
    isOpen = false;
  });

  return {
    isTerminal,
    onInterrupt: (handler: () => void) => void input.on('SIGINT', handler),
    /** Text stands on the line that was not entered yet. */
    isTyping: () => isTerminal && input.line !== '',
    asked: () => shown,
    /** Takes the prompt off the screen for other output; what was typed stays. */
    hide(): void {
      if (!isVisible) return;
      isVisible = false;
      clearLine(io.stdout, 0);
      cursorTo(io.stdout, 0);
    },
    /** Puts the prompt that was there back. */
    restore(): void {
      if (!isOpen || isVisible || !hasPrompt) return;
      isVisible = true;
      input.prompt(true);
    },
    /** `asked`: key of the question that the label names; lines entered at this prompt count for it. */
    show(label: string, asked: string | null): void {
      if (!isOpen && isTerminal) return;
      shown = asked;
      if (!isTerminal) return;
      hasPrompt = true;
      input.setPrompt(`${style.bold(label)}: `);
      isVisible = true;
      input.prompt(true);
    },
    async *lines(): AsyncGenerator<Typed> {
      for await (const text of source) {
        const then = entered.shift() ?? null;
        yield { text, asked: isTerminal ? then : shown };
      }
    },
    close: () => input.close(),
  };
}
export type Console = ReturnType<typeof openConsole>;
