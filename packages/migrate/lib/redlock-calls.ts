import type ts from 'typescript';
import { hasSpecial } from './lock-keys.js';
import { planLock } from './redlock-locks.js';
import { waitOf, type Retries } from './redlock-settings.js';
import { callOn, type ServiceCall } from './service-calls.js';
import type { Subject } from './subject.js';
import { isTooShort, optionsText } from './values.js';

/** What a call of redlock becomes. */
export interface CallPlan {
  /** Where redlock is named. */
  readonly mentions: readonly ts.Node[];
  /** The names that are removed, and the calls that are rewritten. */
  readonly gone: readonly ts.Node[];
  /** @param service the name of the property */
  rewrite(service: string): void;
}

/** @param mention redlock, as a property; what is returned is certain, and everything else is `undefined` */
export const planCall = (
  subject: Subject,
  mention: ts.Identifier,
  retries: Retries,
): CallPlan | undefined =>
  planUsing(subject, mention, retries) ?? planAcquire(subject, mention, retries);

/** `this.redlock.using(resources, ttl, settings, async (signal) => …)` */
function planUsing(
  subject: Subject,
  mention: ts.Identifier,
  retries: Retries,
): CallPlan | undefined {
  const { ts } = subject;
  const call = callOn(subject, mention, /^using$/);
  const routine = call?.arguments.at(-1);
  if (call === undefined || routine === undefined) return undefined;
  if (call.arguments.length < 3 || call.arguments.length > 4) return undefined;
  if (!ts.isArrowFunction(routine) && !ts.isFunctionExpression(routine)) return undefined;
  const settings = call.arguments.length === 4 ? call.arguments[2] : undefined;
  const locking = lockingOf(subject, call, { settings, retries });
  const signal = planSignal(subject, routine);
  if (locking === undefined || signal === undefined) return undefined;
  return {
    mentions: [mention],
    gone: signal.gone,
    rewrite(service) {
      locking(service, 'run', {});
      signal.rewrite(call);
    },
  };
}

/** The routine of redlock is given a signal, and ours the lock, which has one. */
function planSignal(
  subject: Subject,
  routine: ts.ArrowFunction | ts.FunctionExpression,
): { readonly gone: readonly ts.Node[]; rewrite(place: ts.Node): void } | undefined {
  const { ts, source } = subject;
  const [parameter, another] = routine.parameters;
  const readsArguments =
    ts.isFunctionExpression(routine) &&
    subject.namesWithin(routine.body).some(({ text }) => text === 'arguments');
  if (another !== undefined || readsArguments) return undefined;
  if (parameter === undefined) return { gone: [], rewrite: () => undefined };
  const { name, initializer, dotDotDotToken } = parameter;
  if (!ts.isIdentifier(name) || initializer !== undefined || dotDotDotToken !== undefined)
    return undefined;
  const uses = subject.mentionsOf(subject.symbolOf(name)).filter((use) => use !== name);
  if (!uses.every((use) => isMember(subject, use) || isSignalOption(subject, use)))
    return undefined;
  return {
    gone: subject.namesWithin(parameter),
    rewrite(place) {
      const start = subject.startOf(parameter);
      const binding = name.text === 'signal' ? '{ signal }' : `{ signal: ${name.text} }`;
      const isBare = !source.text.slice(subject.startOf(routine), start).includes('(');
      subject.rewrite(place, start, parameter.end, isBare ? `(${binding})` : binding);
      for (const { parent } of uses)
        if (ts.isPropertyAccessExpression(parent) && parent.name.text === 'error')
          subject.rewriteNode(parent.name, 'reason', place);
    },
  };
}

const isMember = ({ ts }: Subject, use: ts.Identifier): boolean =>
  ts.isPropertyAccessExpression(use.parent) && use.parent.expression === use;

/** `{ signal }`: the function with this option reads only what every AbortSignal has. */
const isSignalOption = ({ ts }: Subject, { parent }: ts.Identifier): boolean =>
  (ts.isShorthandPropertyAssignment(parent) || ts.isPropertyAssignment(parent)) &&
  parent.name.getText() === 'signal';

/** `const lock = await this.redlock.acquire(resources, ttl, settings);` */
function planAcquire(
  subject: Subject,
  mention: ts.Identifier,
  retries: Retries,
): CallPlan | undefined {
  const { ts } = subject;
  const call = callOn(subject, mention, /^(acquire|lock)$/);
  if (call === undefined || call.arguments.length > 3 || !ts.isAwaitExpression(call.parent))
    return undefined;
  const { parent: variable } = call.parent;
  if (!ts.isVariableDeclaration(variable) || !ts.isIdentifier(variable.name)) return undefined;
  const { name, type } = variable;
  if (!ts.isVariableStatement(variable.parent.parent)) return undefined;
  const lock = planLock(subject, name, subject.symbolOf(mention));
  const locking = lockingOf(subject, call, { settings: call.arguments[2], retries });
  if (lock === undefined || locking === undefined) return undefined;
  return {
    mentions: [mention, ...lock.mentions],
    gone: [...subject.namesWithin(type), ...lock.calls],
    rewrite(service) {
      if (type !== undefined) subject.rewrite(call, name.end, type.end, '');
      // The acquire() of redlock does not renew its lock.
      locking(service, 'acquire', { autoExtend: 'false' });
      lock.rewrite();
    },
  };
}

type Locking = (service: string, method: string, options: Readonly<Record<string, string>>) => void;

/** Plans all of a call but the work of `using`; `undefined` where something of it is not certain. */
function lockingOf(
  subject: Subject,
  call: ServiceCall,
  given: { readonly settings: ts.Expression | undefined; readonly retries: Retries },
): Locking | undefined {
  const [resources, duration] = call.arguments;
  if (resources === undefined || duration === undefined) return undefined;
  if (call.arguments.some((it) => subject.ts.isSpreadElement(it))) return undefined;
  const wait = waitOf(subject, given.settings, given.retries);
  const key = keyText(subject, resources);
  if (wait === undefined || key === undefined || isTooShort(subject, duration)) return undefined;
  return (service, method, options) => {
    const { expression: owner, name } = call.expression;
    const text = optionsText({ ttl: subject.textOf(duration), wait, ...options });
    const { end } = given.settings ?? duration;
    subject.rewriteNode(owner, `this.${service}`, call);
    subject.rewriteNode(name, method, call);
    subject.rewriteNode(resources, key, call);
    subject.rewrite(call, subject.startOf(duration), end, text);
  };
}

function keyText(subject: Subject, resources: ts.Expression): string | undefined {
  const { ts } = subject;
  if (hasSpecial(subject, resources)) return undefined;
  if (!ts.isArrayLiteralExpression(resources)) return subject.textOf(resources);
  const [only, another] = resources.elements;
  if (only === undefined) return undefined;
  return subject.textOf(another === undefined && !ts.isSpreadElement(only) ? only : resources);
}
