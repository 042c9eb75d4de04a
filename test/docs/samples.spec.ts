import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import * as holdfast from '../../lib/index.js';
import * as testing from '../../lib/testing/index.js';
import { brokenLinksIn } from './links.js';
import { complaintsAbout, samplesIn } from './samples.js';

const project = fileURLToPath(new URL('../../', import.meta.url));
const read = (page: string): string => readFileSync(project + page, 'utf8');

const docs = readdirSync(`${project}docs`)
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`);
const pages = [...readdirSync(project).filter((name) => name.endsWith('.md')), ...docs];

const FENCE = '```';
/** A page whose two samples are broken, on lines 6 and 12. */
const broken = `# Broken

<!-- sample: import { LockService } from 'nestjs-holdfast'; -->

${FENCE}ts
const held: number = await new LockService({ store: 'memory' }).inspect('a');
${FENCE}

${FENCE}ts
import { WithLock } from 'nestjs-holdfast';
class Orders {
  @WithLock('order:<id>')
  pay(id: string): void {}
}
${FENCE}
`;

describe('the samples of the documentation', () => {
  it('compile, and the compiler sees what is wrong with those that do not', () => {
    const samples = ['README.md', ...docs].flatMap((page) => samplesIn(page, read(page)));
    expect(samples.length).toBeGreaterThan(10);

    // In one program, which is what takes the time.
    const complaints = complaintsAbout(
      [...samples, ...samplesIn('broken.md', broken)],
      project,
      read('test/docs/prelude.ts.txt'),
    );

    expect(complaints.filter((complaint) => !complaint.startsWith('broken.md:'))).toEqual([]);
    expect(complaints.filter((complaint) => complaint.startsWith('broken.md:'))).toEqual([
      expect.stringMatching(/^broken\.md:6: Type 'LockInspection' is not assignable/),
      expect.stringMatching(/^broken\.md:12: [^]*make it async/),
    ]);
  }, 60_000);

  it('are marked as "ts", so that none goes unseen', () => {
    const languages = ['README.md', ...docs].flatMap((page) =>
      [...read(page).matchAll(/^```(\w*)\n[^]*?^```$/gm)].map(([, language]) => language),
    );
    expect(
      languages.filter((language) => /^(typescript|js|javascript|)$/.test(language ?? '')),
    ).toEqual([]);
  });
});

describe('the links of the documentation', () => {
  it.each(pages)('of %s lead to files and headings that exist', (page) => {
    expect(brokenLinksIn(page, read(page), project)).toEqual([]);
  });

  it('are found out when they lead nowhere', () => {
    const text =
      '# One\n[a](README.md) [b](docs/none.md) [c](#one) [d](#two) [e](https://nestjs.com)';
    expect(brokenLinksIn('page.md', text, project)).toEqual(['docs/none.md', '#two']);
  });
});

describe('README.md', () => {
  it.each([...Object.keys(holdfast), ...Object.keys(testing)])('says what %s is for', (name) => {
    expect(read('README.md')).toMatch(new RegExp(`\\b${name}\\b`));
  });
});
