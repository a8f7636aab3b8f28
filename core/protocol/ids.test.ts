import { describe, expect, it } from 'vitest';
import { foldName, idFromName, RESERVED_IDS } from './ids.ts';

describe('idFromName', () => {
  const cases: readonly [name: string, id: string][] = [
    ['Madame Pedagogue', 'madame-pedagogue'],
    ['MadamePedagogue', 'madame-pedagogue'],
    ['agent2Go', 'agent2-go'],
    ['HTTPServer', 'httpserver'],
    ['My_Other  Agent!', 'my-other-agent'],
    ['--x--', 'x'],
    ['小明', '小明'],
    ['数据 分析', '数据-分析'],
    ['Jose\u0301', 'josé'],
    ['🤖 Bot', 'bot'],
    ['🛠️ Tools', 'tools'],
    ['Al\u200bice', 'alice'],
    ['__proto__', 'proto'],
    ['toString', 'to-string'],
    ['नमस्ते', 'नमस्ते'],
    ['🤖', ''],
    ['\u200b', ''],
  ];
  for (const [name, id] of cases) {
    it(`makes ${JSON.stringify(id)} of ${JSON.stringify(name)}`, () => expect(idFromName(name)).toBe(id));
  }

  it('gives one id to names that differ in signs alone, so that the conflict can be reported', () => {
    expect(idFromName('C++ Expert')).toBe(idFromName('C# Expert'));
  });
});

describe('foldName', () => {
  const same: readonly [string, string][] = [
    ['Alice Please', 'alice_please'],
    ['alice-please', 'ALICE\u00a0PLEASE'],
    ['José', 'JOSE\u0301'],
    ['Straße', 'STRASSE'],
    ['ΣΟΦΟΣ', 'σοφος'],
    ['ΐ', 'Ι\u0308\u0301'],
    ['Al\u200bice\ufe0f', 'alice'],
    ['가', '\u1100\u1161'],
  ];
  for (const [a, b] of same) {
    it(`reads ${JSON.stringify(a)} and ${JSON.stringify(b)} as one name`, () => expect(foldName(a)).toBe(foldName(b)));
  }

  const different: readonly [string, string][] = [
    ['Alice  Please', 'Alice Please'],
    ['Jose', 'José'],
    ['alice', 'alıce'],
    ['MadamePedagogue', 'Madame Pedagogue'],
  ];
  for (const [a, b] of different) {
    it(`keeps ${JSON.stringify(a)} and ${JSON.stringify(b)} apart`, () => expect(foldName(a)).not.toBe(foldName(b)));
  }
});

it('reserves the words of the mention grammar', () => {
  for (const word of ['all', 'everyone', 'here', 'human', 'user', 'you', 'world', 'system']) {
    expect(RESERVED_IDS.has(word)).toBe(true);
  }
});
