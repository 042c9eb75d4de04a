import type ts from 'typescript';
import { usesOf, type Binding } from './imports.js';
import type { Injection } from './injection.js';
import { hasSpecial } from './lock-keys.js';
import { isWithin, type Subject } from './subject.js';
import { numberIn, optionsIn, SHORTEST_MS, waitText, type Given } from './values.js';

/** A mutex that is made, and taken in the next statement. */
export interface MutexPlan {
  readonly target: ts.ClassDeclaration;
  readonly declaration: ts.Statement;
  readonly acquire: ts.Statement;
  readonly name: string;
  readonly key: string;
  readonly options: Readonly<Record<string, string | undefined>>;
  readonly isAcquired: readonly ts.Node[];
}

/** The defaults of redis-semaphore. */
const RETRY_INTERVAL_MS = 10;
const ACQUIRE_TIMEOUT_MS = 10_000;

/** @param use a mention of the class; what is returned is certain, and everything else is `undefined` */
export function planMutex(
  subject: Subject,
  use: ts.Identifier,
  injection: Injection,
): MutexPlan | undefined {
  const { ts } = subject;
  const { parent: made } = use;
  if (!subject.isTypeScript || !ts.isNewExpression(made) || made.expression !== use)
    return undefined;
  const { parent: variable } = made;
  if (!ts.isVariableDeclaration(variable) || !ts.isIdentifier(variable.name)) return undefined;
  const { parent: list } = variable;
  if (!ts.isVariableDeclarationList(list) || list.declarations.length > 1) return undefined;
  const { parent: declaration } = list;
  if (!ts.isVariableStatement(declaration)) return undefined;
  const target = injection.classAround(made);
  const acquire = nextStatement(subject, declaration);
  const [, key, settings, another] = made.arguments ?? [];
  if (target === undefined || acquire === undefined || key === undefined || another !== undefined)
    return undefined;
  if (hasSpecial(subject, key)) return undefined;
  const options = optionsOf(subject, settings);
  const taken = takenIn(subject, acquire);
  if (options === undefined || taken === undefined) return undefined;
  const mentions = subject.mentionsOf(subject.symbolOf(variable.name));
  const others = mentions.filter((node) => node !== variable.name && node !== taken.name);
  if (mentions.length !== others.length + 2) return undefined;
  const members = others.map((node) => memberOf(subject, node));
  if (!members.every((member) => member === 'release' || member === 'isAcquired')) return undefined;
  return {
    ...{ target, declaration, acquire },
    name: variable.name.text,
    key: subject.textOf(key),
    options: { ...options, signal: taken.signal },
    isAcquired: others.flatMap(({ parent }) =>
      ts.isPropertyAccessExpression(parent) && parent.name.text === 'isAcquired'
        ? [parent.name]
        : [],
    ),
  };
}

/** Whether the mutexes in the methods of this file may use different Redis servers. */
export function mayDiffer(subject: Subject, mutex: Binding, injection: Injection): boolean {
  const { ts } = subject;
  const clients = usesOf(subject, mutex).flatMap((use) => {
    const { parent: made } = use;
    const target = injection.classAround(use);
    if (target === undefined || !ts.isNewExpression(made)) return [];
    return made.arguments?.slice(0, 1).map((client) => clientText(subject, client, target)) ?? [];
  });
  return new Set(clients).size > 1 || clients.includes(undefined);
}

/** The client without its type; `undefined` if a local variable can change it between two calls. */
function clientText(
  subject: Subject,
  client: ts.Expression,
  target: ts.ClassDeclaration,
): string | undefined {
  const { ts } = subject;
  if (
    ts.isAssertionExpression(client) ||
    ts.isSatisfiesExpression(client) ||
    ts.isNonNullExpression(client) ||
    ts.isParenthesizedExpression(client)
  )
    return clientText(subject, client.expression, target);
  const isLocal = subject
    .namesWithin(client)
    .flatMap((name) => subject.symbolOf(name) ?? [])
    .filter(({ flags }) => (flags & ts.SymbolFlags.Variable) !== 0)
    .some(({ declarations }) => declarations?.some((it) => isWithin(it, target)));
  return isLocal ? undefined : subject.textOf(client);
}

function nextStatement({ ts }: Subject, statement: ts.Statement): ts.Statement | undefined {
  const { parent } = statement;
  if (!ts.isBlock(parent)) return undefined;
  return parent.statements[parent.statements.indexOf(statement) + 1];
}

/** `await mutex.acquire();` */
function takenIn(
  subject: Subject,
  statement: ts.Statement,
): { readonly name: ts.Node; readonly signal: string | undefined } | undefined {
  const { ts } = subject;
  if (!ts.isExpressionStatement(statement) || !ts.isAwaitExpression(statement.expression))
    return undefined;
  const { expression: call } = statement.expression;
  if (!ts.isCallExpression(call) || !ts.isPropertyAccessExpression(call.expression))
    return undefined;
  if (call.expression.name.text !== 'acquire') return undefined;
  const [signal] = call.arguments;
  return {
    name: call.expression.expression,
    signal: signal === undefined ? undefined : subject.textOf(signal),
  };
}

/** What is called, or read, of the mutex; `undefined` for everything else that can be done with it. */
function memberOf({ ts }: Subject, node: ts.Identifier): string | undefined {
  const { parent } = node;
  if (!ts.isPropertyAccessExpression(parent) || parent.expression !== node) return undefined;
  const { parent: outer } = parent;
  const isCalled = ts.isCallExpression(outer) && outer.expression === parent;
  const { text: name } = parent.name;
  if (isCalled) return name === 'release' && outer.arguments.length === 0 ? name : undefined;
  return name === 'isAcquired' ? name : undefined;
}

function optionsOf(
  subject: Subject,
  settings: ts.Expression | undefined,
): Readonly<Record<string, string | undefined>> | undefined {
  const given = optionsIn(subject, settings);
  if (given === undefined) return undefined;
  const known = new Map(given);
  const take = (name: string): Given | undefined => {
    const value = known.get(name);
    known.delete(name);
    return value;
  };
  const ttl = take('lockTimeout');
  const timeout = take('acquireTimeout');
  const limit = take('acquireAttemptsLimit');
  const interval = take('retryInterval');
  const refresh = take('refreshInterval');
  // `onLockLost`, `identifier` and what else there may be is not for us to decide.
  if (known.size > 0) return undefined;
  const isBelow = (given: Given | undefined, least: number): boolean =>
    given !== undefined && (numberIn(subject, given.value) ?? least) < least;
  // With these, LockService throws, or redis-semaphore never acquires.
  if (isBelow(ttl, SHORTEST_MS) || isBelow(timeout, SHORTEST_MS) || isBelow(limit, 1))
    return undefined;
  const refreshMs = refresh === undefined ? undefined : numberIn(subject, refresh.value);
  if (refresh !== undefined && refreshMs === undefined) return undefined;
  const wait =
    limit === undefined ? timeout?.text : shorterWait(subject, { limit, interval, timeout });
  return { ttl: ttl?.text, wait, autoExtend: refreshMs === 0 ? 'false' : undefined };
}

/** The attempts or the time limit, whichever ends first. */
function shorterWait(
  subject: Subject,
  {
    limit,
    interval,
    timeout,
  }: Readonly<Record<'interval' | 'timeout', Given | undefined>> & { readonly limit: Given },
): string {
  const count = numberIn(subject, limit.value);
  if (count === 1) return '0';
  const limitMs = timeout === undefined ? ACQUIRE_TIMEOUT_MS : numberIn(subject, timeout.value);
  const pauseMs = interval === undefined ? RETRY_INTERVAL_MS : numberIn(subject, interval.value);
  const product = waitText(subject, limit.value, interval?.value ?? RETRY_INTERVAL_MS);
  if (count !== undefined && pauseMs !== undefined && limitMs !== undefined)
    return count * pauseMs < limitMs ? product : (timeout?.text ?? String(limitMs));
  return `Math.min(${timeout?.text ?? String(ACQUIRE_TIMEOUT_MS)}, ${product})`;
}
