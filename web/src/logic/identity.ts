/** A stable hue for an id, in degrees; the same on every machine. */
export function hueOf(id: string): number {
  let hash = 0x811c9dc5;
  for (const character of id) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  // Neighbouring hashes must not give neighbouring hues: the golden angle spreads them.
  return Math.round(((hash % 4096) * 137.508) % 360);
}

/** One or two letters for a name: initials, or the first two letters of a single word. */
export function monogramOf(name: string): string {
  const words = name.match(/[\p{L}\p{N}]+/gu) ?? [];
  const first = [...(words[0] ?? '')];
  const second = [...(words[1] ?? '')];
  const letters = second.length > 0 ? [first[0], second[0]?.toUpperCase()] : [first[0], first[1]?.toLowerCase()];
  const [head = '·', tail = ''] = letters;
  return head.toUpperCase() + tail;
}
