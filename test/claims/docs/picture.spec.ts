import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

const project = new URL('../../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, project), 'utf8');

/** npm shows README.md, and none of the files beside it. */
const FILES = 'https://raw.githubusercontent.com/nestjs-holdfast/nestjs-holdfast/main/';

describe('the picture in README.md', () => {
  const [, alt = '', address = ''] = /!\[([^\]]*)\]\(([^)]+)\)/.exec(read('README.md')) ?? [];
  const picture = read(address.slice(FILES.length));

  it('has an address that npm can show, and a text for those who do not see it', () => {
    expect(address).toBe(`${FILES}docs/picture.svg`);
    expect(alt.split(' ').length).toBeGreaterThan(20);
    expect(picture).toMatch(/<svg [^>]*role="img" aria-labelledby="title desc"/);
    expect(picture).toMatch(/<title id="title">.+<\/title>\n<desc id="desc">.+<\/desc>/);
  });

  it('runs no script and loads nothing, because GitHub and npm forbid it', () => {
    expect(picture).not.toMatch(/<script|<foreignObject|\son\w+=|href=|url\(|@import/i);
  });

  it('has colours for dark pages, and stands still for those who want no motion', () => {
    expect(picture).toContain('@media (prefers-color-scheme: dark)');
    const animated = new Set(
      [...picture.matchAll(/^\s*\.([\w-]+) \{ animation: /gm)].map(([, name]) => name),
    );
    const [, still = ''] =
      /@media \(prefers-reduced-motion: reduce\) \{([^}]*)\}/.exec(picture) ?? [];
    expect(animated.size).toBeGreaterThan(0);
    for (const name of animated) expect(still).toContain(`.${String(name)}`);
    expect(still).toContain('animation: none');
    expect(picture).not.toContain('infinite');
  });
});
