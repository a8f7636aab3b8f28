export type Theme = 'system' | 'light' | 'dark';
const KEY = 'parley.theme';
const ORDER: readonly Theme[] = ['system', 'light', 'dark'];

class ThemeChoice {
  value = $state<Theme>('system');

  constructor() {
    this.#apply(localStorage.getItem(KEY));
    // Another tab has chosen.
    addEventListener('storage', (event) => {
      if (event.key === KEY) this.#apply(event.newValue);
    });
  }

  next(): void {
    const theme = ORDER[(ORDER.indexOf(this.value) + 1) % ORDER.length] ?? 'system';
    localStorage.setItem(KEY, theme);
    this.#apply(theme);
  }

  #apply(stored: string | null): void {
    this.value = stored === 'light' || stored === 'dark' ? stored : 'system';
    if (this.value === 'system') delete document.documentElement.dataset['theme'];
    else document.documentElement.dataset['theme'] = this.value;
  }
}

export const theme = new ThemeChoice();
