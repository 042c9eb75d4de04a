import { describe, expect, it } from '@jest/globals';
import { connectProblem, type ConnectError } from '../../lib/store/redis/client/connect-problem.js';

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
