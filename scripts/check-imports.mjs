// Enforces the layout: who imports whom, and what has one home. Usage: node scripts/check-imports.mjs
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parse as parseSvelte } from 'svelte/compiler';
import ts from 'typescript';
import * as rules from './import-rules.mjs';
import { root } from './sources.mjs';

/** @typedef {{ path: string, text: string }} SourceFile */
/** @typedef {{ path: string, line: number, message: string }} Finding */

const FETCHERS = new Set(['undici', 'axios', 'got', 'node-fetch', 'ky']);
const CONNECTS = new Map([
  ['http', ['request', 'get']],
  ['https', ['request', 'get']],
  ['http2', ['connect']],
  ['net', ['connect', 'createConnection', 'Socket']],
  ['tls', ['connect']],
]);
const bare = (/** @type {string} */ name) => name.replace(/^node:/, '');
const isIn = (/** @type {RegExp[]} */ homes, /** @type {string} */ path) => homes.some((home) => home.test(path));

/**
 * The script of a component as a module with its lines where they were, and what its markup may not have.
 * @param {SourceFile} file @returns {{ text: string, findings: Finding[] }}
 */
function scriptOf(file) {
  const ast = /** @type {any} */ (parseSvelte(file.text, { modern: true, filename: file.path }));
  /** @type {Finding[]} */
  const findings = [];
  const visit = (/** @type {any} */ node) => {
    if (node === null || typeof node !== 'object') return;
    if (node.type === 'HtmlTag') {
      const line = file.text.slice(0, node.start).split('\n').length;
      findings.push({ path: file.path, line, message: '{@html} inserts unescaped text' });
    }
    for (const value of Object.values(node)) visit(value);
  };
  visit(ast.fragment);
  const blank = (/** @type {string} */ text) => text.replace(/[^\n]/g, ' ');
  let text = '';
  let end = 0;
  const scripts = [ast.module, ast.instance].filter(Boolean).map((script) => script.content);
  for (const { start, end: stop } of scripts.sort((a, b) => a.start - b.start)) {
    text += blank(file.text.slice(end, start)) + file.text.slice(start, stop);
    end = stop;
  }
  return { text: `${text}\nexport {};`, findings };
}

/**
 * A program over these files alone: enough to know whether a name such as `fetch` is the global one.
 * @param {Map<string, string>} texts
 */
function programOf(texts) {
  const options = { noResolve: true, noLib: true, allowJs: false, types: [], target: ts.ScriptTarget.ES2022 };
  return ts.createProgram({
    rootNames: [...texts.keys()],
    options,
    host: {
      getSourceFile: (name, target) => {
        const text = texts.get(name);
        return text === undefined ? undefined : ts.createSourceFile(name, text, target, true);
      },
      getDefaultLibFileName: () => 'lib.d.ts',
      writeFile: () => undefined,
      getCurrentDirectory: () => '',
      getCanonicalFileName: (name) => name,
      useCaseSensitiveFileNames: () => true,
      getNewLine: () => '\n',
      fileExists: (name) => texts.has(name),
      readFile: (name) => texts.get(name),
    },
  });
}

/** @param {SourceFile} file @returns {Finding[]} */
function checkFile(file) {
  const lines = file.text.split('\n').length - 1;
  const name = basename(file.path).replace(/(?:\.test|\.svelte|\.browser)*\.(?:ts|svelte|mjs)$/, '');
  /** @type {Finding[]} */
  const findings = [];
  const add = (/** @type {string} */ message) => findings.push({ path: file.path, line: 1, message });
  if (lines > rules.MAX_LINES) add(`${lines} lines: more than ${rules.MAX_LINES} wants a redesign`);
  if (rules.VAGUE_NAMES.some((vague) => name === vague || name.endsWith(`-${vague}`))) add('the name says nothing');
  const pattern = file.path.endsWith('.svelte') ? /^[A-Z][A-Za-z0-9]*$/ : /^[a-z0-9]+(?:[-.][a-z0-9]+)*$/;
  if (!pattern.test(name)) add('files are named in kebab-case, components in PascalCase');
  return findings;
}

/**
 * The name that an expression ends in, and the global that it starts from: `globalThis.fetch`, `fetch`.
 * @param {ts.Node} node @param {(id: ts.Identifier) => boolean} isGlobal @returns {string | null}
 */
function globalName(node, isGlobal) {
  if (ts.isIdentifier(node)) return isGlobal(node) ? node.text : null;
  if (!ts.isPropertyAccessExpression(node) || !ts.isIdentifier(node.expression)) return null;
  const holder = node.expression;
  return ['globalThis', 'global', 'window', 'self'].includes(holder.text) && isGlobal(holder) ? node.name.text : null;
}

/** An identifier that names a member, a label or a type says nothing about a global. @param {ts.Identifier} id */
function isReference(id) {
  const { parent } = id;
  if (ts.isPropertyAccessExpression(parent) && parent.name === id) return false;
  if (ts.isQualifiedName(parent) || ts.isTypeNode(parent) || ts.isImportSpecifier(parent)) return false;
  if ((ts.isPropertyAssignment(parent) || ts.isPropertySignature(parent)) && parent.name === id) return false;
  if ((ts.isMethodDeclaration(parent) || ts.isMethodSignature(parent)) && parent.name === id) return false;
  return !(ts.isBindingElement(parent) && parent.propertyName === id);
}

/**
 * @param {ts.SourceFile} source @param {ts.TypeChecker} checker @param {string} path
 * @returns {Finding[]}
 */
function checkSource(source, checker, path) {
  /** @type {Finding[]} */
  const findings = [];
  const add = (/** @type {ts.Node} */ node, /** @type {string} */ message) => {
    findings.push({ path, line: source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1, message });
  };
  const isTest = rules.TEST.test(path);
  const isProduct = rules.PRODUCT.test(path) && !isTest;
  const layer = rules.LAYERS.find(({ files }) => files.test(path));
  const symbolOf = (/** @type {ts.Identifier} */ id) =>
    ts.isShorthandPropertyAssignment(id.parent)
      ? checker.getShorthandAssignmentValueSymbol(id.parent)
      : checker.getSymbolAtLocation(id);
  const isGlobal = (/** @type {ts.Identifier} */ id) =>
    isReference(id) && (symbolOf(id)?.declarations ?? []).length === 0;

  const checkImport = (/** @type {ts.Node} */ node, /** @type {string} */ from, /** @type {string[]} */ names) => {
    if (from.startsWith('.')) {
      const target = posix.normalize(posix.join(posix.dirname(path), from.replace(/\?.*$/, '')));
      if (layer && !isIn(layer.may, target)) add(node, `${layer.layer} may not import ${target}`);
      return;
    }
    const module = bare(from);
    if (module === 'child_process' && !isIn(rules.HOMES.childProcess, path)) {
      add(node, 'child_process belongs in its named files only');
    }
    if (module === 'process' && names.includes('env') && !isIn(rules.HOMES.env, path)) {
      add(node, 'process.env belongs in core/config.ts only');
    }
    const connects = CONNECTS.get(module)?.some((name) => names.includes(name)) ?? false;
    if ((FETCHERS.has(module) || connects) && !isIn(rules.HOMES.outbound, path)) {
      add(node, 'outbound requests belong in core/safety/outbound.ts only');
    }
    if (rules.WORLD.test(path) && from.startsWith('node:'))
      add(node, 'core/world reaches the machine through ports only');
  };

  const checkGlobal = (/** @type {ts.Node} */ node, /** @type {string} */ name) => {
    const { parent } = node;
    const member = ts.isPropertyAccessExpression(parent) && parent.expression === node ? parent.name.text : null;
    const called = ts.isCallExpression(parent) || ts.isNewExpression(parent) ? parent.expression === node : false;
    if (name === 'process' && !isIn(rules.HOMES.env, path)) {
      const taken = ts.isVariableDeclaration(parent) && parent.name.getText(source).includes('env');
      const index = ts.isElementAccessExpression(parent) && parent.argumentExpression.getText(source).includes('env');
      if (member === 'env' || taken || index) add(node, 'process.env belongs in core/config.ts only');
    }
    if (name === 'fetch' && !rules.BROWSER_CODE.test(path) && !isIn(rules.HOMES.outbound, path)) {
      add(node, 'fetch belongs in core/safety/outbound.ts only');
    }
    if (name === 'RegExp' && called && !isIn(rules.HOMES.regexp, path)) {
      add(node, 'patterns that are made at run time belong in core/safety/patterns.ts only');
    }
    if ((name === 'Function' && called) || name === 'eval') add(node, 'code from text is never run');
    if (!rules.WORLD.test(path)) return;
    const now = name === 'Date' && (member === 'now' || (called && isEmptyCall(parent)));
    const random = name === 'Math' && member === 'random';
    if (now || random || rules.AMBIENT.includes(name))
      add(node, 'core/world gets clock, ids and the machine from its ports');
  };

  const visit = (/** @type {ts.Node} */ node) => {
    if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
      if (isProduct) checkImport(node, node.moduleSpecifier.text, importedNames(node, source));
    } else if (ts.isExportDeclaration(node) && node.moduleSpecifier && ts.isStringLiteral(node.moduleSpecifier)) {
      if (isProduct) checkImport(node, node.moduleSpecifier.text, []);
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [from] = node.arguments;
      if (isProduct && from && ts.isStringLiteral(from)) checkImport(node, from.text, []);
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      const { literal } = node.argument;
      if (isProduct && ts.isStringLiteral(literal)) checkImport(node, literal.text, []);
    } else if (isProduct && (ts.isIdentifier(node) || ts.isPropertyAccessExpression(node))) {
      const name = globalName(node, isGlobal);
      if (name !== null) checkGlobal(node, name);
      if (ts.isPropertyAccessExpression(node)) checkMember(node, add, path);
    }
    if (isTest && ts.isCallExpression(node)) {
      const call = node.expression.getText(source);
      if (
        /^(?:test|it|describe|suite|context|ctx)\b[^()]*\.(?:skip|skipIf|runIf|only|todo|fails)\b[^()]*$/.test(call)
      ) {
        add(node, `${call} hides tests: fix or remove them`);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return findings;
}

/** @param {ts.PropertyAccessExpression} node @param {(node: ts.Node, message: string) => void} add @param {string} path */
function checkMember(node, add, path) {
  if (!rules.BROWSER_CODE.test(path)) return;
  if (['innerHTML', 'outerHTML', 'insertAdjacentHTML', 'createContextualFragment'].includes(node.name.text)) {
    add(node, `${node.name.text} inserts unescaped text`);
  }
}

/** @param {ts.Node} node */
function isEmptyCall(node) {
  if (ts.isNewExpression(node)) return (node.arguments ?? []).length === 0;
  return ts.isCallExpression(node);
}

/** @param {ts.ImportDeclaration} node @param {ts.SourceFile} source */
function importedNames(node, source) {
  const bindings = node.importClause?.namedBindings;
  if (bindings && ts.isNamedImports(bindings)) {
    return bindings.elements.map((element) => (element.propertyName ?? element.name).getText(source));
  }
  return [];
}

/** All findings in these files; paths are relative to the project, with slashes. @param {SourceFile[]} files */
export function checkFiles(files) {
  /** @type {Finding[]} */
  const findings = files.flatMap(checkFile);
  /** @type {Map<string, string>} */
  const texts = new Map();
  /** @type {Map<string, string>} */
  const realPaths = new Map();
  for (const file of files) {
    if (file.path.endsWith('.svelte')) {
      const script = scriptOf(file);
      findings.push(...script.findings);
      texts.set(`${file.path}.ts`, script.text);
      realPaths.set(`${file.path}.ts`, file.path);
    } else if (file.path.endsWith('.ts')) {
      texts.set(file.path, file.text);
      realPaths.set(file.path, file.path);
    }
  }
  const program = programOf(texts);
  const checker = program.getTypeChecker();
  for (const [name, path] of realPaths) {
    const source = program.getSourceFile(name);
    if (source) findings.push(...checkSource(source, checker, path));
  }
  return findings.sort((a, b) => a.path.localeCompare(b.path) || a.line - b.line);
}

function projectFiles() {
  const list = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root });
  const wanted = /^(?:core|server|cli|web|plugins|tests|scripts|bench)\/.*\.(?:ts|svelte|mjs)$/;
  const paths = list
    .toString('utf8')
    .split('\0')
    .filter((path) => wanted.test(path));
  return paths.flatMap((path) => {
    try {
      return [{ path, text: readFileSync(join(root, path), 'utf8') }];
    } catch {
      return []; // deleted but still in the index
    }
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const files = projectFiles();
  const findings = checkFiles(files);
  for (const { path, line, message } of findings) console.log(`${path}:${line}: ${message}`);
  if (findings.length === 0) console.log(`${files.length} files keep the layout`);
  process.exitCode = findings.length === 0 ? 0 : 1;
}
