import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const LINK = /\]\((?<inline>[^)\s]+)\)|^\[[^\]]+\]: (?<defined>\S+)$/gm;
const HEADING = /^#+ (?<title>.*)$/gm;
/** Code may show links that are none. */
const CODE = /^```[^]*?^```$|`[^`\n]*`/gm;

/** The links of a page that lead nowhere: to a file of the project that does not exist, or to a heading that it does not have. */
export function brokenLinksIn(page: string, text: string, project: string): readonly string[] {
  return [...text.replaceAll(CODE, '').matchAll(LINK)]
    .map(({ groups }) => groups?.inline ?? groups?.defined ?? '')
    .filter((target) => !/^[a-z]+:/.test(target) && !leadsSomewhere(target, page, text, project));
}

function leadsSomewhere(target: string, page: string, text: string, project: string): boolean {
  const [path = '', anchor] = target.split('#');
  const file = join(project, dirname(page), path);
  if (path !== '' && !existsSync(file)) return false;
  return (
    anchor === undefined || anchorsOf(path === '' ? text : readFileSync(file, 'utf8')).has(anchor)
  );
}

/** As GitHub makes them. */
export const anchorsOf = (text: string): ReadonlySet<string> =>
  new Set(
    [...text.replaceAll(/^```[^]*?^```$/gm, '').matchAll(HEADING)].map(({ groups }) =>
      (groups?.title ?? '')
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replaceAll(' ', '-'),
    ),
  );
