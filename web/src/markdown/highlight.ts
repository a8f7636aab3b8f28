/** Colours for code, loaded when the first closed fence needs them. */
import type { HighlighterCore } from 'shiki/core';

export interface CodePiece {
  readonly text: string;
  /** A custom property of the theme, or '' for plain text. */
  readonly color: string;
}

type LanguageModule = Promise<{ default: unknown[] }>;
const LANGUAGES: Record<string, () => LanguageModule> = {
  bash: () => import('shiki/langs/bash.mjs'),
  c: () => import('shiki/langs/c.mjs'),
  cpp: () => import('shiki/langs/cpp.mjs'),
  csharp: () => import('shiki/langs/csharp.mjs'),
  css: () => import('shiki/langs/css.mjs'),
  diff: () => import('shiki/langs/diff.mjs'),
  go: () => import('shiki/langs/go.mjs'),
  html: () => import('shiki/langs/html.mjs'),
  java: () => import('shiki/langs/java.mjs'),
  javascript: () => import('shiki/langs/javascript.mjs'),
  json: () => import('shiki/langs/json.mjs'),
  kotlin: () => import('shiki/langs/kotlin.mjs'),
  markdown: () => import('shiki/langs/markdown.mjs'),
  php: () => import('shiki/langs/php.mjs'),
  python: () => import('shiki/langs/python.mjs'),
  ruby: () => import('shiki/langs/ruby.mjs'),
  rust: () => import('shiki/langs/rust.mjs'),
  sql: () => import('shiki/langs/sql.mjs'),
  svelte: () => import('shiki/langs/svelte.mjs'),
  swift: () => import('shiki/langs/swift.mjs'),
  toml: () => import('shiki/langs/toml.mjs'),
  tsx: () => import('shiki/langs/tsx.mjs'),
  typescript: () => import('shiki/langs/typescript.mjs'),
  yaml: () => import('shiki/langs/yaml.mjs'),
};
const ALIASES: Record<string, string> = {
  sh: 'bash',
  shell: 'bash',
  zsh: 'bash',
  'c++': 'cpp',
  'c#': 'csharp',
  cs: 'csharp',
  golang: 'go',
  js: 'javascript',
  jsx: 'tsx',
  md: 'markdown',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  ts: 'typescript',
  yml: 'yaml',
};

/** Longer code stays plain: colouring it would hold the page up. */
const MAX_CODE = 20_000;
const MAX_CACHED = 100;
const cache = new Map<string, readonly (readonly CodePiece[])[]>();
let highlighter: Promise<HighlighterCore> | null = null;
const loaded = new Set<string>();

export function languageOf(lang: string | undefined): string | null {
  const name = (lang ?? '').trim().split(/\s/, 1)[0]?.toLowerCase() ?? '';
  const known = Object.hasOwn(ALIASES, name) ? ALIASES[name] : name;
  return known !== undefined && Object.hasOwn(LANGUAGES, known) ? known : null;
}

const keyOf = (code: string, language: string): string => `${language}\n${code}`;

/** What is known already, so that a message that is drawn again does not flicker. */
export const cachedLines = (code: string, language: string) => cache.get(keyOf(code, language)) ?? null;

/** Lines of coloured pieces; null where the code stays plain. */
export async function highlight(code: string, language: string): Promise<readonly (readonly CodePiece[])[] | null> {
  const load = LANGUAGES[language];
  if (!load || code.length > MAX_CODE) return null;
  const known = cachedLines(code, language);
  if (known) return known;
  highlighter ??= createHighlighter();
  const shiki = await highlighter;
  if (!loaded.has(language)) {
    await shiki.loadLanguage((await load()).default as never);
    loaded.add(language);
  }
  const { tokens } = shiki.codeToTokens(code, { lang: language, theme: 'parley' });
  const lines = tokens.map((line) => line.map(({ content, color }) => ({ text: content, color: color ?? '' })));
  if (cache.size >= MAX_CACHED) cache.delete(cache.keys().next().value ?? '');
  cache.set(keyOf(code, language), lines);
  return lines;
}

async function createHighlighter(): Promise<HighlighterCore> {
  const [{ createHighlighterCore, createCssVariablesTheme }, { createJavaScriptRegexEngine }] = await Promise.all([
    import('shiki/core'),
    import('shiki/engine/javascript'),
  ]);
  const theme = createCssVariablesTheme({ name: 'parley', variablePrefix: '--code-' });
  return createHighlighterCore({
    themes: [theme],
    langs: [],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  });
}
