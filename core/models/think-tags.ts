/** Some servers leave a model's thinking in the text, as `<think>…</think>` at its beginning. */
import type { ModelPart } from '../ports.ts';

const OPEN = '<think>';
const CLOSE = '</think>';

export interface ThinkSplitter {
  push(text: string): ModelPart[];
  /** What was held back, at the end of the stream. */
  end(): ModelPart[];
}

/** Moves leading thinking into `reasoning` parts, whatever way the tags are cut. Tags further on are plain text. */
export function splitThinking(): ThinkSplitter {
  let state: 'start' | 'inside' | 'after' | 'text' = 'start';
  let held = '';

  const text = (value: string): ModelPart[] => (value === '' ? [] : [{ type: 'text', text: value }]);
  const reasoning = (value: string): ModelPart[] => (value === '' ? [] : [{ type: 'reasoning', text: value }]);

  function start(): ModelPart[] {
    const seen = held.trimStart();
    if (seen.length < OPEN.length && OPEN.startsWith(seen)) return [];
    if (!seen.startsWith(OPEN)) {
      state = 'text';
      return text(take());
    }
    state = 'inside';
    held = seen.slice(OPEN.length);
    return inside();
  }

  function inside(): ModelPart[] {
    const close = held.indexOf(CLOSE);
    if (close >= 0) {
      const thought = held.slice(0, close);
      held = held.slice(close + CLOSE.length);
      state = 'after';
      return [...reasoning(thought), ...after()];
    }
    const keep = overlap(held);
    const thought = held.slice(0, held.length - keep);
    held = held.slice(held.length - keep);
    return reasoning(thought);
  }

  /** White space between the thinking and the answer belongs to neither. */
  function after(): ModelPart[] {
    held = held.trimStart();
    if (held === '') return [];
    state = 'text';
    return text(take());
  }

  function take(): string {
    const all = held;
    held = '';
    return all;
  }

  return {
    push(chunk) {
      if (state === 'text') return text(chunk);
      held += chunk;
      if (state === 'start') return start();
      return state === 'inside' ? inside() : after();
    },
    end() {
      const rest = take();
      if (state === 'inside') return reasoning(rest);
      return state === 'start' ? text(rest) : [];
    },
  };
}

/** How many characters at the end of the text could begin the closing tag. */
function overlap(text: string): number {
  for (let length = Math.min(CLOSE.length - 1, text.length); length > 0; length -= 1) {
    if (CLOSE.startsWith(text.slice(-length))) return length;
  }
  return 0;
}
