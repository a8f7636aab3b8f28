import { isAlias, LineCounter, parseDocument, visit } from 'yaml';

export type ParsedYaml = { ok: true; value: unknown } | { ok: false; problem: string };

/**
 * Reads one YAML document of foreign origin: at most `maxBytes` of UTF-8, no anchors' aliases, no unknown tags,
 * no repeated keys. A problem names its line; the value still has to pass a strict schema.
 */
export function parseForeignYaml(text: string, maxBytes: number): ParsedYaml {
  if (Buffer.byteLength(text) > maxBytes) return { ok: false, problem: `it is larger than ${maxBytes} bytes` };
  const lines = new LineCounter();
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true, strict: true });
    const fault = document.errors[0] ?? document.warnings[0];
    if (fault) return { ok: false, problem: `line ${lines.linePos(fault.pos[0]).line}: ${fault.message}` };
    let alias: number | undefined;
    visit(document, {
      Node(_key, node) {
        if (!isAlias(node)) return;
        alias = node.range?.[0] ?? 0;
        return visit.BREAK;
      },
    });
    if (alias !== undefined)
      return { ok: false, problem: `line ${lines.linePos(alias).line}: aliases are not allowed` };
    return { ok: true, value: document.toJS({ maxAliasCount: 0 }) };
  } catch (error) {
    // Nesting deeper than the stack.
    if (error instanceof RangeError) return { ok: false, problem: 'it is nested too deeply' };
    throw error;
  }
}
