/** What a rule's text becomes: placeholders filled in one pass, then cut into chunks. */
import type { Scene } from '../ports.ts';

const PLACEHOLDER = /\{\{\s*(sender|message|turn|agents|topic|[1-9])\s*\}\}/g;
const MAX_TOPIC_CHARS = 80;

/**
 * Fills `{{sender}}`, `{{message}}`, `{{turn}}`, `{{agents}}`, `{{topic}}` and `{{1}}`…`{{9}}` (groups of the
 * rule's `matches`) in one pass: what a value brings in is never filled again. Other braces stay as they are.
 */
export function fillText(template: string, scene: Scene, groups: readonly string[]): string {
  return template.replace(PLACEHOLDER, (_whole, name: string) => {
    switch (name) {
      case 'sender':
        // A name is one line, whatever it was set to.
        return scene.from.replace(/\s+/g, ' ');
      case 'message':
        return scene.text;
      case 'turn':
        return String(scene.turn);
      case 'agents':
        return scene.agents.join(', ');
      case 'topic':
        return topicOf(scene.text) || 'this';
      default:
        return groups[Number(name)] ?? '';
    }
  });
}

/** Fills every text inside a call's arguments. */
export function fillArgs(value: unknown, scene: Scene, groups: readonly string[]): unknown {
  if (typeof value === 'string') return fillText(value, scene, groups);
  if (Array.isArray(value)) return value.map((item) => fillArgs(item, scene, groups));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillArgs(item, scene, groups)]));
}

/**
 * The message's first line of substance, short and plain: no leading names, no at-signs, code or tags, so that
 * quoting it can neither address anybody nor open code.
 */
export function topicOf(text: string): string {
  const line =
    text
      .split(/[\r\n]+/)
      .map((part) => part.replace(/^(?:[\s>#*+-]|[@＠][\p{L}\p{M}\p{N}_-]+[,:]?)+/u, '').trim())
      .find((part) => part !== '') ?? '';
  const plain = line
    .replace(/[@＠`<>*_~"“”\\[\]|]/g, '')
    .replace(/\s+/g, ' ')
    .trim();
  const characters = Array.from(plain);
  if (characters.length <= MAX_TOPIC_CHARS) return plain;
  return `${characters
    .slice(0, MAX_TOPIC_CHARS - 1)
    .join('')
    .trimEnd()}…`;
}

const graphemes = new Intl.Segmenter('und', { granularity: 'grapheme' });
const PLAIN = /^[\x20-\x7e\n]*$/;

/** Cuts text into chunks of `size` characters as a reader sees them: an emoji is never split. */
export function* chunksOf(text: string, size: number): Generator<string> {
  if (PLAIN.test(text)) {
    for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
    return;
  }
  let chunk = '';
  let count = 0;
  for (const { segment } of graphemes.segment(text)) {
    chunk += segment;
    count += 1;
    if (count < size) continue;
    yield chunk;
    chunk = '';
    count = 0;
  }
  if (chunk !== '') yield chunk;
}
