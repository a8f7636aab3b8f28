import { createInterface } from 'node:readline';
import type { Approval } from '../core/protocol/entities.ts';
import type { AnswerApproval } from '../core/protocol/requests.ts';
import { renderQuestion } from './approval-card.ts';
import { type Asked, createDesk, keysOf } from './approval-desk.ts';
import { type Io, line, type Style } from './io.ts';

/**
 * Asks a person on the terminal about approvals, one at a time; the card is shown by the caller. A line that was typed
 * before its question stood there decides nothing.
 */
export function askOnTerminal(io: Io, style: Style) {
  // Without line editing the terminal keeps its own Ctrl-C.
  const input = createInterface({ input: io.stdin, terminal: false });
  let take: ((text: string) => void) | null = null;
  let hasEnded = false;
  input.on('close', () => {
    hasEnded = true;
  });
  input.on('line', (text) => {
    if (take) take(text);
    else line(io.stderr, style.dim('nothing is asked now; this line was not used'));
  });

  return {
    ask(approval: Approval, signal: AbortSignal): Promise<AnswerApproval> {
      const desk = createDesk();
      desk.see(approval);
      return new Promise((resolve, reject) => {
        const end = () => {
          take = null;
          signal.removeEventListener('abort', aborted);
          input.off('close', closed);
        };
        const aborted = () => {
          end();
          io.stderr.write('\n');
          reject(signal.reason);
        };
        const closed = () => {
          end();
          resolve({ skipped: true, chatId: approval.chatId, text: 'nobody could be asked: the input has ended' });
        };
        const show = (asked: Asked | null) => {
          if (asked === null) return;
          if (approval.kind === 'ask_user') {
            line(io.stderr, renderQuestion(asked.question, asked.place, approval.questions.length, style));
          }
          prompt(asked);
        };
        const prompt = (asked: Asked) => io.stderr.write(`${style.bold('decide')} (${keysOf(asked)}): `);
        take = (text) => {
          const asked = desk.current();
          const reading = asked && desk.read(asked.key, text);
          if (!asked || !reading) return;
          if (reading.kind === 'answer') {
            end();
            resolve(reading.answer);
          } else if (reading.kind === 'next') {
            show(desk.current());
          } else {
            line(io.stderr, style.warn(reading.kind === 'hint' ? reading.text : 'that decides nothing'));
            prompt(asked);
          }
        };
        if (signal.aborted) return aborted();
        if (hasEnded) return closed();
        signal.addEventListener('abort', aborted, { once: true });
        input.once('close', closed);
        show(desk.current());
      });
    },
    close: () => input.close(),
  };
}
