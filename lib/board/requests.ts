import {
  BadRequestException,
  ForbiddenException,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import type { LockBoardOptions } from './board-options.js';

/** What Express and Fastify have in common. */
export interface BoardRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly originalUrl: string;
}

/** The longest texts, in characters. */
const LONGEST = { key: 1_024, id: 100, reason: 500 } as const;

const LONGEST_OPERATOR = 200;

const headersOf = (context: ExecutionContext): BoardRequest['headers'] =>
  context.switchToHttp().getRequest<BoardRequest>().headers;

/** Refuses other sites that the CORS settings of the application would let read what is held. */
export class OwnPageGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const site = headersOf(context)['sec-fetch-site'];
    if (site === undefined || site === 'same-origin' || site === 'none') return true;
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
  const host = headers.host ?? headers[':authority'];
  if (typeof origin !== 'string' || typeof host !== 'string') return false;
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}

/** A text of the body that is not empty. */
export function textOf(body: unknown, name: keyof typeof LONGEST): string {
  const value = (body as Record<string, unknown> | null | undefined)?.[name];
  const text = typeof value === 'string' ? value : '';
  if (text.trim() === '' || text.length > LONGEST[name])
    throw new BadRequestException(`"${name}" is a text of 1 to ${LONGEST[name]} characters.`);
  return name === 'reason' ? text.trim() : text;
}

/** The prefix of the query. */
export const queryText = (value: unknown): string =>
  typeof value === 'string' ? value.slice(0, LONGEST.key) : '';

/** Who acts, as the application knows it. */
export async function operatorOf(
  request: BoardRequest,
  options: LockBoardOptions,
): Promise<string> {
  const named = (await options.user?.(request))?.trim() ?? '';
  return named === '' ? 'board' : named.slice(0, LONGEST_OPERATOR);
}
