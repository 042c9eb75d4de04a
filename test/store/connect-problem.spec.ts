import { describe, expect, it } from '@jest/globals';
import {
  connectProblem,
  tlsHint,
  type ConnectError,
} from '../../lib/store/redis/client/connect-problem.js';

const problemOf = (message: string, more: Partial<ConnectError> = {}): string =>
  connectProblem(Object.assign(new Error(message), more));

describe('what went wrong with a connection', () => {
  it.each<[string, string, Partial<ConnectError>, string]>([
    ['the message', 'read ECONNRESET', { code: 'ECONNRESET' }, 'read ECONNRESET'],
    [
      'what the first address said, where a name has several',
      '',
      { code: 'ECONNREFUSED', errors: [new Error('connect ::1'), new Error('connect 127.0.0.1')] },
      'connect ::1',
    ],
    ['the code, where there is nothing else', ' ', { code: 'ETIMEDOUT' }, 'ETIMEDOUT'],
    [
      'followed by what to do, where that is known',
      '',
      { code: 'CERT_HAS_EXPIRED' },
      'CERT_HAS_EXPIRED (renew the TLS certificate of the server, or set the clock of this machine)',
    ],
  ])('is %s', (_, message, more, expected) => {
    expect(problemOf(message, more)).toBe(expected);
  });
});

describe('a hint at TLS', () => {
  it.each<[string, string, Parameters<typeof tlsHint>]>([
    ['none where the server is away', '', [true, 'connect ECONNREFUSED']],
    [
      'that the port has none, where it speaks otherwise',
      'but not TLS',
      [true, 'wrong version number'],
    ],
    [
      'that the port has none, where it does not begin with it',
      'but not TLS',
      [true, 'no answer', true],
    ],
    [
      'that the port may have it, where it ends plain connections',
      'write rediss://',
      [false, 'read ECONNRESET'],
    ],
    [
      'none where a certificate is at fault',
      '',
      [true, 'wrong version number of the certificate', true],
    ],
    ['none where a plain connection is refused', '', [false, 'connect ECONNREFUSED']],
  ])('is %s', (_, expected, given) => {
    const hint = tlsHint(...given);
    if (expected === '') expect(hint).toBe('');
    else expect(hint).toContain(expected);
  });
});
