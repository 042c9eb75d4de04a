import { describe, expect, it } from '@jest/globals';
import { commentsIn } from '../../../scripts/prose/comments.mjs';
import { luaCommentsIn } from '../../../scripts/prose/lua-comments.mjs';
import { messagesIn } from '../../../scripts/prose/messages.mjs';
import { longCommentLines, problemsOf, problemsOfComment } from '../../../scripts/prose/rules.mjs';

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

describe('the rules of comments', () => {
  const problems = (comment: string): readonly string[] =>
    problemsOfComment(comment).map(({ line, problem }) => `${line}: ${problem}`);

  it('refuse a sentence that begins with "Of"', () => {
    expect(problems('The limit.\nOf a Cluster: none.')).toEqual([
      '1: begin with the subject, not with "Of": Of a Cluster: none.',
    ]);
  });

  it('refuse a first sentence whose subject is a pronoun without its noun', () => {
    expect(problems('It is gone.')).toEqual(['1: name the subject of the comment: It is gone.']);
    expect(problems('The key is gone. It was deleted.')).toEqual([]);
  });

  it('refuse lines of more than 140 columns, and count no code', () => {
    const source = ['x'.repeat(141), `// ${'x'.repeat(137)}`, ` * ${'x'.repeat(138)}`];
    expect(longCommentLines(source.join('\n'))).toEqual([
      { line: 3, problem: 'a comment of 141 columns, at most 140' },
    ]);
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

describe('the comments of the library', () => {
  const problems = (source: string): readonly string[] =>
    commentsIn(source).flatMap(({ text, line }) =>
      problemsOf(text).map((found) => `${line + found.line - 1}: ${found.problem.slice(0, 24)}`),
    );

  it('are read as Markdown, line by line, each tag as a text of its own', () => {
    const source = [
      '/**',
      ' * Locks {@link Order.id a key}.',
      ' *',
      ' * @param key what is locked',
      ' *   by it',
      ' * @throws LockLostError when it is lost',
      ' * @example',
      ' * ```ts',
      ' * @WithLock()',
      ' * ```',
      ' */',
      'const a = 1; // behind code',
      '// Two lines,',
      '// one text.',
      '// eslint-disable-next-line no-console -- a directive is no text',
      "const text = '// no comment';",
    ];
    expect(commentsIn(source.join('\n'))).toEqual([
      {
        text: [
          '',
          'Locks `Order.id a key`.',
          '',
          '- what is locked',
          '  by it',
          '- LockLostError when it is lost',
          '-',
          '```ts',
          '@WithLock()',
          '```',
          '',
        ].join('\n'),
        line: 1,
      },
      { text: 'behind code', line: 12 },
      { text: 'Two lines,\none text.', line: 13 },
    ]);
  });

  it('keep the rules, and a problem names the line of the file', () => {
    const tag = ` * @param key ${words(31)}`;
    expect(
      problems(`const a = 1;\n/**\n * ${words(30)}\n${tag}\n */\n// Whoever waits.\n`),
    ).toEqual(['4: a sentence of 31 words, ', '6: "Whoever": write the act']);
    expect(problems(`/**\n * @example\n * \`\`\`ts\n * // nobody waits\n * \`\`\`\n */`)).toEqual(
      [],
    );
  });

  it('are those of JSX, too', () => {
    const page = 'const page = <p>{/* Nobody waits. */}</p>;';
    expect(commentsIn(page, 'page.tsx')).toEqual([{ text: 'Nobody waits.', line: 1 }]);
  });

  it('are those of Lua scripts, too: a line of the head is a text, and comments in a row are one', () => {
    const source = [
      'const SCRIPT = `--[[',
      "  KEYS    main ('' = none)",
      "  ARGV    1 token, or 'nobody'",
      ']]',
      '${CLOCK}local a = 1',
      '-- Two lines,',
      '-- one text.',
      "redis.call('SET', KEYS[1], '-- no comment') -- behind code",
      'end',
      '`;',
    ];
    expect(luaCommentsIn(source.join('\n'))).toEqual([
      { text: "KEYS    main ('' = none)", line: 2 },
      { text: 'ARGV    1 token, or Code', line: 3 },
      { text: 'Two lines,\none text.', line: 6 },
      { text: 'behind code', line: 8 },
    ]);
  });
});
