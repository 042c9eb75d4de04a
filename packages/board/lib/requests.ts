import { isIP } from 'node:net';
import {
  BadRequestException,
  ForbiddenException,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { LockKeyError } from 'nestjs-holdfast';
import type { SeenHolder, SeenInstance, SeenLock, SeenOnce } from 'nestjs-holdfast/admin';
import type { LockBoardOptions } from './board-options.js';
import { FILTERS, SORTS, type View } from './board.types.js';

/** What Express and Fastify have in common. */
export interface BoardRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly originalUrl: string;
}

/** The longest texts, in characters. */
const LONGEST = { key: 1_024, id: 100, reason: 500 } as const;

const LONGEST_OPERATOR = 200;

/** What LockAdmin refuses in a reason and an operator. */
const CONTROL = /[\p{Cc}\u2028\u2029]/gu;

/** How many keys are released together. */
const MOST_LOCKS = 200;

const headersOf = (context: ExecutionContext): BoardRequest['headers'] =>
  context.switchToHttp().getRequest<BoardRequest>().headers;

/**
 * Refuses a request for a host that is not the page's. With DNS rebinding, a name of an attacker leads to this
 * application, and its page is then of the same origin.
 */
export class HostGuard implements CanActivate {
  readonly #isOurs: (host: string) => boolean;

  constructor({ hosts, unguarded = false }: LockBoardOptions) {
    const names = hosts?.map((host) => host.toLowerCase());
    if (names !== undefined) this.#isOurs = (host) => names.includes(host);
    else this.#isOurs = unguarded ? isOwnMachine : () => true;
  }

  canActivate(context: ExecutionContext): boolean {
    const host = hostIn(headersOf(context)) ?? '';
    const { hostname = '' } = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : {};
    if (this.#isOurs(hostname)) return true;
    throw new ForbiddenException(
      'The page does not answer under this host name. Name it in the option "hosts" of LockBoardModule.',
    );
  }
}

/** An address needs no DNS, so it cannot be rebound. */
const isOwnMachine = (host: string): boolean =>
  /^(.+\.)?localhost$/.test(host) || isIP(host.replace(/^\[|\]$/g, '')) !== 0;

const hostIn = (headers: BoardRequest['headers']): string | undefined => {
  const host = headers.host ?? headers[':authority'];
  return typeof host === 'string' ? host : undefined;
};

/** Refuses other sites that the CORS settings of the application would let read what is held. */
export class OwnPageGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const headers = headersOf(context);
    const { origin, 'sec-fetch-site': site } = headers;
    // A browser sends no `Origin` with what a page reads of its own server.
    const isOwn = site === 'none' || (site === undefined && origin === undefined);
    if (isOwn || isSameOrigin(headers)) return true;
    throw new ForbiddenException('Only the page itself may read this.');
  }
}

/** Refuses what another site, or a form, may have sent. */
export class SameOriginGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const headers = headersOf(context);
    if (headers['x-holdfast-board'] === '1' && isSameOrigin(headers)) return true;
    throw new ForbiddenException(
      'Only the page itself may do this. Behind a proxy, let it pass on the Host header.',
    );
  }
}

/** `Sec-Fetch-Site` is the browser's own word, right behind proxies too. Over plain HTTP there is only `Origin`. */
function isSameOrigin(headers: BoardRequest['headers']): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  const { origin } = headers;
  const host = hostIn(headers);
  if (typeof origin !== 'string' || host === undefined) return false;
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}

/** A text of the body that is not empty. */
export function textOf(body: unknown, name: keyof typeof LONGEST): string {
  const value = (body as Record<string, unknown> | null | undefined)?.[name];
  const text = typeof value === 'string' ? value : '';
  const isReason = name === 'reason';
  const kept = isReason ? text.trim() : text;
  const lines = isReason ? ' in one line' : '';
  if (text.trim() === '' || text.length > LONGEST[name] || (isReason && kept.search(CONTROL) >= 0))
    throw new BadRequestException(
      `"${name}" is a text of 1 to ${LONGEST[name]} characters${lines}.`,
    );
  return kept;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const isText = (value: unknown): value is string => typeof value === 'string';

/** The key, and the holders that the operator saw. */
export function lockIn(body: unknown): SeenLock {
  const key = textOf(body, 'key');
  const { holders } = body as { readonly holders?: unknown };
  if (Array.isArray(holders) && holders.every(isSeenHolder)) return { key, holders };
  throw new BadRequestException('"holders" are the holders that the page showed.');
}

/** Several keys, each with the holders that the operator saw. */
export function locksIn(body: unknown): readonly SeenLock[] {
  const { locks } = (body ?? {}) as { readonly locks?: unknown };
  if (Array.isArray(locks) && locks.length > 0 && locks.length <= MOST_LOCKS)
    return locks.map(lockIn);
  throw new BadRequestException(`"locks" are 1 to ${MOST_LOCKS} keys that the page showed.`);
}

/** The page shows keys of other software, too, which may be none that a lock can have. */
export async function withLockKey<Outcome>(outcome: Promise<Outcome>): Promise<Outcome> {
  try {
    return await outcome;
  } catch (error) {
    throw error instanceof LockKeyError ? new BadRequestException(error.detail) : error;
  }
}

const isSeenHolder = (holder: unknown): holder is SeenHolder =>
  isObject(holder) &&
  isText(holder.leaseId) &&
  (holder.fencingToken === undefined || Number.isSafeInteger(holder.fencingToken));

/** One that replies keeps its locks. */
export const instanceIn = (body: unknown): SeenInstance => ({
  id: textOf(body, 'id'),
  isUnresponsive: true,
});

/** The key, and what the operator saw of its work. */
export function onceIn(body: unknown): SeenOnce {
  const key = textOf(body, 'key');
  const { once } = body as { readonly once?: unknown };
  if (isObject(once) && isText(once.state) && Number.isSafeInteger(once.attempts))
    return { key, once: once as NonNullable<SeenOnce['once']> };
  throw new BadRequestException('"once" is what the page showed of the work.');
}

/** What a browser wants to see: what it does not say, or not well, is the default. */
export function viewIn(query: Readonly<Record<string, unknown>>): View {
  const page = Number(query.page);
  return {
    search: queryText(query.search, LONGEST.key),
    filter: FILTERS.find((filter) => filter === query.filter) ?? 'all',
    sort: SORTS.find((sort) => sort === query.sort) ?? 'waiting',
    page: Number.isSafeInteger(page) && page > 0 ? page : 1,
    instance: queryText(query.instance, LONGEST.id),
  };
}

const queryText = (value: unknown, longest: number): string =>
  isText(value) ? value.slice(0, longest) : '';

/** Who acts, as the application knows it. */
export async function operatorOf(
  request: BoardRequest,
  options: LockBoardOptions,
): Promise<string> {
  const named = (await options.user?.(request))?.trim() ?? '';
  // Node reads a header in UTF-8 as Latin-1, so a name can have control characters.
  return named === '' ? 'board' : named.slice(0, LONGEST_OPERATOR).replace(CONTROL, '\uFFFD');
}
