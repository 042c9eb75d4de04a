import type ts from 'typescript';
import { importsOf, otherMentions, type ImportSite } from './imports.js';
import { isInstance, type IsClass } from './instances.js';
import { changeImport, isClassName, planImport } from './redlock-imports.js';
import { rewriteOldCalls } from './redlock-4.js';
import type { SourceLibrary } from './source-library.js';
import type { Subject } from './subject.js';
import { optionsIn, waitText } from './values.js';

const HEADING = 'redlock-5';

/** `redlock` 4 and 5 and its fork: the import becomes that of `nestjs-holdfast/redlock`, which has the API of redlock 5. */
export const redlock: SourceLibrary = {
  packages: ['redlock', '@sesamecare-oss/redlock'],
  migrate(subject) {
    const sites = importsOf(subject, redlock.packages);
    const others = otherMentions(subject, redlock.packages, sites);
    for (const node of others)
      subject.mark(node, 'name nestjs-holdfast/redlock here as well.', HEADING);
    const plans = sites.map((site) => planImport(subject, site));
    const isKept = plans.some(({ kind }) => kind === 'keep');
    for (const [index, site] of sites.entries()) {
      const plan = plans[index];
      if (plan?.kind === 'keep')
        for (const node of plan.at) subject.mark(node, plan.problem, HEADING);
      // One file has one Redlock: a lock of the other one does not fit it.
      else if (plan !== undefined && !isKept) changeImport(subject, site, plan);
    }
    if (isKept) return;
    const isRedlock = classNamed(subject, sites, isClassName);
    const isLock = classNamed(subject, sites, (name) => name === 'Lock');
    rewriteOldCalls(subject, isRedlock, isLock);
    markDifferences(subject, isRedlock);
  },
};

/** What means a class of the package: a name that was imported, or one of the module. */
function classNamed(
  subject: Subject,
  sites: readonly ImportSite[],
  isWanted: (imported: string) => boolean,
): IsClass {
  const symbols = new Set(
    sites
      .flatMap(({ bindings }) => bindings)
      .filter(({ imported }) => isWanted(imported))
      .map(({ symbol }) => symbol),
  );
  return (name) => {
    const symbol = subject.symbolOf(name);
    return symbol !== undefined && symbols.has(symbol);
  };
}

/** The defaults of redlock 4 and 5. */
const [RETRY_COUNT, RETRY_DELAY_MS] = [10, 200];

/** How long the retries last: what LockService has to wait for the same patience. The jitter goes both ways. */
function patience(subject: Subject, made: ts.NewExpression): string {
  const settings = optionsIn(subject, made.arguments?.[1]);
  if (settings === undefined) return 'retryCount * retryDelay';
  return waitText(
    subject,
    settings.get('retryCount')?.value ?? RETRY_COUNT,
    settings.get('retryDelay')?.value ?? RETRY_DELAY_MS,
  );
}

/** What the replacement does in another way, and what comes next. */
function markDifferences(subject: Subject, isRedlock: IsClass): void {
  const { ts } = subject;
  for (const node of subject.all(ts.isNewExpression)) {
    if (!isRedlock(node.expression)) continue;
    if (node.arguments?.[2] !== undefined)
      subject.mark(node, 'scripts cannot be replaced: remove the third argument.', HEADING);
    subject.mark(
      node,
      `the next major version removes nestjs-holdfast/redlock: register LockModule, and inject LockService, with wait: ${patience(subject, node)}.`,
      HEADING,
    );
  }
  for (const call of subject.all(ts.isCallExpression)) markCall(subject, call, isRedlock);
}

function markCall(subject: Subject, call: ts.CallExpression, isRedlock: IsClass): void {
  const { ts } = subject;
  const { expression, arguments: given } = call;
  if (!ts.isPropertyAccessExpression(expression)) return;
  if (!isInstance(subject, expression.expression, isRedlock)) return;
  const { text: name } = expression.name;
  if (name === 'release' && given.length > 1)
    subject.mark(call, 'release() takes the lock only.', HEADING);
  const routine = given.at(-1);
  const takesContext =
    routine !== undefined &&
    (ts.isArrowFunction(routine) || ts.isFunctionExpression(routine)) &&
    routine.parameters.length > 1;
  if (name === 'using' && takesContext)
    subject.mark(call, 'the routine of using() gets the signal only.', HEADING);
}
