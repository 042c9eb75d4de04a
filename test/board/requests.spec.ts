import { describe, expect, it } from '@jest/globals';
import { BadRequestException, ForbiddenException, type ExecutionContext } from '@nestjs/common';
import {
  operatorOf,
  OwnPageGuard,
  SameOriginGuard,
  textOf,
  viewIn,
  type BoardRequest,
} from '../../packages/board/lib/requests.js';

type Headers = BoardRequest['headers'];

const requestWith = (headers: Headers): BoardRequest => ({ headers, originalUrl: '/locks' });

const contextWith = (headers: Headers): ExecutionContext =>
  ({
    switchToHttp: () => ({ getRequest: () => requestWith(headers) }),
  }) as unknown as ExecutionContext;

describe('who may read the page', () => {
  const guard = new OwnPageGuard();

  const host = 'example.com:3000';
  const origin = `http://${host}`;

  it.each<[Headers]>([
    [{}],
    [{ host }],
    [{ host, origin }],
    [{ 'sec-fetch-site': 'same-origin' }],
    [{ 'sec-fetch-site': 'same-origin', host: 'behind-a-proxy', origin }],
    [{ 'sec-fetch-site': 'none' }],
  ])('is a client with %j', (headers) => {
    expect(guard.canActivate(contextWith(headers))).toBe(true);
  });

  it.each<[Headers]>([
    [{ 'sec-fetch-site': 'same-site' }],
    [{ 'sec-fetch-site': 'cross-site' }],
    [{ 'sec-fetch-site': 'cross-site', host, origin }],
    [{ 'sec-fetch-site': '' }],
    [{ host, origin: 'http://evil.example' }],
    [{ host, origin: 'http://evil.example', 'x-forwarded-host': 'evil.example' }],
    [{ host, origin: 'null' }],
    [{ host, origin: [origin] }],
    [{ origin }],
  ])('is no client with %j', (headers) => {
    const reading = () => guard.canActivate(contextWith(headers));
    expect(reading).toThrow(ForbiddenException);
    expect(reading).toThrow('Only the page itself may read this.');
  });
});

describe('who may act', () => {
  const guard = new SameOriginGuard();
  const ours = { 'x-holdfast-board': '1' };
  const http = { ...ours, origin: 'http://example.com:3000', host: 'example.com:3000' };
  const { host, ...hostless } = http;

  it.each<[string, Headers]>([
    ['what a browser calls the same origin', { ...ours, 'sec-fetch-site': 'same-origin' }],
    ['the origin of the host', http],
    ['the origin of a host in capitals', { ...http, host: 'EXAMPLE.com:3000' }],
    ['the origin of the authority of HTTP/2', { ...hostless, ':authority': host }],
  ])('is %s', (_what, headers) => {
    expect(guard.canActivate(contextWith(headers))).toBe(true);
  });

  it.each<[string, Headers]>([
    ['a request without the header', { ...http, 'x-holdfast-board': undefined }],
    ['a request with another header', { ...http, 'x-holdfast-board': '2' }],
    ['what a browser calls another site', { ...http, 'sec-fetch-site': 'cross-site' }],
    ['what a browser calls no site', { ...http, 'sec-fetch-site': 'none' }],
    ['another host', { ...http, host: 'example.org:3000' }],
    ['another port', { ...http, host: 'example.com' }],
    ['a request without a host', hostless],
    ['a request without an origin', { ...http, origin: undefined }],
    ['a request with several origins', { ...http, origin: [http.origin] }],
    ['a request with an origin that is none', { ...http, origin: 'null' }],
  ])('is not %s', (_what, headers) => {
    const acting = () => guard.canActivate(contextWith(headers));
    expect(acting).toThrow(ForbiddenException);
    expect(acting).toThrow(
      'Only the page itself may do this. Behind a proxy, let it pass on the Host header.',
    );
  });
});

describe('a text of the body', () => {
  it('is as it was sent, and a reason without the space around it', () => {
    expect(textOf({ key: ' a ' }, 'key')).toBe(' a ');
    expect(textOf({ id: ' b ' }, 'id')).toBe(' b ');
    expect(textOf({ reason: ' c ' }, 'reason')).toBe('c');
  });

  it('is one line where it is a reason', () => {
    expect(textOf({ reason: 'c\n' }, 'reason')).toBe('c');
    for (const reason of ['c\nd', 'c\u0081d', 'c\u2028d'])
      expect(() => textOf({ reason }, 'reason')).toThrow(
        new BadRequestException('"reason" is a text of 1 to 500 characters in one line.'),
      );
  });

  it.each([
    ['key', 1_024, '.'],
    ['id', 100, '.'],
    ['reason', 500, ' in one line.'],
  ] as const)('has at most so many characters: %s, %d', (name, most, end) => {
    expect(textOf({ [name]: 'x'.repeat(most) }, name)).toHaveLength(most);
    const refused = [{ [name]: 'x'.repeat(most + 1) }, { [name]: ' ' }, { [name]: 1 }, null, 'x'];
    for (const body of [...refused, undefined]) {
      expect(() => textOf(body, name)).toThrow(BadRequestException);
      expect(() => textOf(body, name)).toThrow(
        `"${name}" is a text of 1 to ${String(most)} characters${end}`,
      );
    }
  });
});

describe('the view that a query asks for', () => {
  const all = { search: '', filter: 'all', sort: 'waiting', page: 1, instance: '' };

  it('is what the query says', () => {
    const view = { search: 'order:', filter: 'detached', sort: 'key', page: 3, instance: 'x' };
    expect(viewIn({ ...view, page: '3' })).toEqual(view);
    expect(viewIn({ search: 'x'.repeat(2_000) }).search).toBe('x'.repeat(1_024));
  });

  it.each<Record<string, unknown>>([
    {},
    { search: ['a'], filter: 'none', sort: 1, page: '0', instance: 7 },
    { page: '1.5' },
    { page: '-1' },
    { page: 'x' },
  ])('is all keys for %j', (query) => {
    expect(viewIn(query)).toEqual(all);
  });
});

describe('the operator', () => {
  const request = requestWith({ 'x-user': ' mia ' });
  const named = (name: string | undefined) => operatorOf(request, { user: async () => name });

  it('is whom the application names, in 200 characters', async () => {
    const user = (given: unknown) => String((given as BoardRequest).headers['x-user']);
    expect(await operatorOf(request, { user })).toBe('mia');
    expect(await named('x'.repeat(300))).toBe('x'.repeat(200));
  });

  it('has no control characters, which LockAdmin refuses', async () => {
    expect(await named('Å\u0081u\nk\u2028')).toBe('Å\uFFFDu\uFFFDk');
  });

  it('is the board where the application names nobody', async () => {
    const all = [operatorOf(request, {}), named(undefined), named(''), named('  ')];
    expect(await Promise.all(all)).toEqual(['board', 'board', 'board', 'board']);
  });
});
