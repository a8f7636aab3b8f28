const SCHEMES = new Set(['http:', 'https:', 'mailto:']);

/**
 * The address of a link that may be followed; null for anything else: other schemes, relative addresses, nonsense.
 * What the browser's own parser makes of it counts, so that no spelling of a scheme gets past.
 */
export function safeHref(href: string): string | null {
  try {
    const url = new URL(href);
    return SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** The host that a link leads to, or the address of a mail. */
export function hostOf(href: string): string {
  const url = new URL(href);
  return url.host || url.pathname;
}
