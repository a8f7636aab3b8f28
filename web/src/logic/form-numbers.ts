/** A whole number that was typed; null for an empty field. Throws what to do for anything else. */
export function wholeNumber(typed: string | number | null | undefined, name: string): number | null {
  const text = String(typed ?? '').trim();
  if (text === '') return null;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${name} must be a whole number from 1 on, or empty`);
  return value;
}

/** A number between 0 and 1; null for an empty field. */
export function fraction(typed: string | number | null | undefined, name: string): number | null {
  const text = String(typed ?? '').trim();
  if (text === '') return null;
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0 || value > 1) throw new Error(`${name} must be between 0 and 1, or empty`);
  return value;
}
