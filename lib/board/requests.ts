import {
  BadRequestException,
  ForbiddenException,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';

/** What Express and Fastify have in common. */
export interface BoardRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly originalUrl: string;
}

/** The longest reason, in characters. */
const LONGEST_REASON = 500;

/** The longest key and the longest id that are looked for. */
const LONGEST_NAME = 4_096;

/** Refuses what another site, or a form, may have sent. */
export class SameOriginGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<BoardRequest>();
    if (headers['x-holdfast-board'] === '1' && isSameOrigin(headers)) return true;
    throw new ForbiddenException('Only the page itself may do this.');
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

/** A text of the body, trimmed. */
export function textOf(body: unknown, name: 'key' | 'id' | 'reason'): string {
  const value = (body as Record<string, unknown> | null | undefined)?.[name];
  const text = typeof value === 'string' ? value : '';
  const longest = name === 'reason' ? LONGEST_REASON : LONGEST_NAME;
  if (text.trim() === '' || text.length > longest)
    throw new BadRequestException(`\`${name}\` is a text of 1 to ${longest} characters.`);
  return name === 'reason' ? text.trim() : text;
}

/** A key or prefix of the query. */
export const queryText = (value: unknown): string => (typeof value === 'string' ? value : '');

/** A number of the query from 1 to `most`. */
export function queryLimit(value: unknown, most: number): number {
  const number = Number(queryText(value) || most);
  if (Number.isInteger(number) && number >= 1) return Math.min(number, most);
  throw new BadRequestException('`limit` is a whole number from 1.');
}
