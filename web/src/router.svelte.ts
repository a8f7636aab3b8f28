import { parseRoute, type Route } from './logic/route.ts';

class Router {
  route = $state.raw<Route>(parseRoute(location.pathname));

  constructor() {
    addEventListener('popstate', () => this.#read());
  }

  go(path: string, how: 'push' | 'replace' = 'push'): void {
    if (path !== location.pathname) history[how === 'push' ? 'pushState' : 'replaceState'](null, '', path);
    this.#read();
  }

  #read(): void {
    this.route = parseRoute(location.pathname);
  }
}

export const router = new Router();

/** For links: a plain click stays on the page, any other is the browser's. */
export function followLink(event: MouseEvent & { currentTarget: HTMLAnchorElement }): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  event.preventDefault();
  router.go(event.currentTarget.pathname);
}
