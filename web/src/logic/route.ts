/** Where the page is: `/`, `/w/WORLD`, `/w/WORLD/c/CHAT`. */
export type Route =
  | { readonly page: 'worlds' }
  | { readonly page: 'world'; readonly world: string; readonly chat: string | null }
  | { readonly page: 'unknown' };

export function parseRoute(path: string): Route {
  const parts = path.split('/').filter((part) => part !== '');
  if (parts.length === 0) return { page: 'worlds' };
  const [w, world, c, chat, more] = parts.map(decode);
  if (w !== 'w' || !world || more !== undefined) return { page: 'unknown' };
  if (c === undefined) return { page: 'world', world, chat: null };
  return c === 'c' && chat ? { page: 'world', world, chat } : { page: 'unknown' };
}

function decode(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

export function pathOf(world: string, chat: string | null = null): string {
  const base = `/w/${encodeURIComponent(world)}`;
  return chat === null ? base : `${base}/c/${encodeURIComponent(chat)}`;
}
