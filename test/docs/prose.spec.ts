import { describe, expect, it } from '@jest/globals';
import { messagesIn } from '../../scripts/prose/messages.mjs';
import { problemsOf } from '../../scripts/prose/rules.mjs';

const lines = (page: string): readonly string[] =>
  problemsOf(page).map(({ line, problem }) => `${line}: ${problem}`);

const words = (count: number): string => `Word${' word'.repeat(count - 1)}.`;

describe('the rules of the documentation', () => {
  it('allow a sentence of 30 words and refuse one of 31, in paragraphs, lists and tables', () => {
    expect(lines(`${words(30)} ${words(30)}\n\n- ${words(30)}\n`)).toEqual([]);
    const table = `| a |\n| - |\n| ${words(31)} |\n`;
    expect(lines(`# Title\n\n- ${words(31)}\n\n${table}`)).toEqual([
      expect.stringMatching(/^3: a sentence of 31 words/),
      expect.stringMatching(/^7: a sentence of 31 words/),
    ]);
  });

  it('count inline code as one word, and end a sentence after a unit', () => {
    expect(lines(`${'`a b c` '.repeat(30)}.`)).toEqual([]);
    expect(lines(`Word ${'word '.repeat(20)}5 s. ${words(20)}`)).toEqual([]);
  });

  it('name the word to use', () => {
    expect(lines('Redis is there.')).toEqual([
      '1: "is there": write "reachable", "available" or "exists"',
    ]);
    expect(lines('`release()` answers `true`.')).toEqual([
      '1: "FunctionCall answers": write "returns": HTTP answers, functions return',
    ]);
    expect(lines('Whoever waits is told, and the lock is given back.')).toHaveLength(3);
  });

  it('leave alone what HTTP answers, code, titles of tests and generated tables', () => {
    expect(lines('A second request answers 409. There is a reason.')).toEqual([]);
    expect(lines('`somebody`\n\n```ts\n// nobody is told\n```\n')).toEqual([]);
    expect(lines('| test |\n| - |\n| `test/a.spec.ts`: nobody is told |\n')).toEqual([]);
    expect(lines('<!-- options: once -->\n\n| option |\n| - |\n| Whoever |\n')).toEqual([]);
  });
});

describe('the messages of the library', () => {
  it('are its texts of three words and more, with a word for each value', () => {
    const source = [
      "const name = 'two words';",
      'throw new Error(`Lock ${key} was lost ` +',
      "  'on ' + node);",
      `log.warn("Give it as 'for ever' or 'forever'.");`,
      'const page = <p title="no locks held">Nobody waits here</p>;',
    ];
    expect(messagesIn(source.join('\n'))).toEqual([
      { text: 'Lock Code was lost on Code', line: 2 },
      { text: "Give it as 'for ever' or Code.", line: 4 },
      { text: 'no locks held', line: 5 },
      { text: 'Nobody waits here', line: 5 },
    ]);
  });
});
