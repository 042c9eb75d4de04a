import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError } from '../../lib/errors.js';
import {
  clockDrift,
  count,
  duration,
  flag,
  keyPrefix,
  serviceName,
} from '../../lib/options/checks.js';
import { toMs } from '../../lib/options/duration.js';
import { inPlace } from '../../lib/options/in-place.js';
import { optional, required, resolve, withDefault } from '../../lib/options/schema.js';
import { refuseUnknown } from '../../lib/options/unknown-option.js';

describe('a schema of options', () => {
  const schema = {
    least: required(count()),
    wait: optional(duration()),
    fair: withDefault(flag, true),
  };

  it('gives what was given, in the units of the library, and defaults for the rest', () => {
    expect(resolve(schema, { least: 1 })).toEqual({ least: 1, waitMs: undefined, fair: true });
    expect(resolve(schema, { least: 2, wait: '2s', fair: false })).toEqual({
      least: 2,
      waitMs: 2_000,
      fair: false,
    });
  });

  it('takes null for nothing where there is a default', () => {
    expect(resolve(schema, { least: 1, fair: null }).fair).toBe(true);
  });

  it('refuses null where there is no default', () => {
    expect(() => resolve(schema, { least: 1, wait: null })).toThrow(LockConfigurationError);
    expect(() => resolve(schema, { least: null })).toThrow(
      'Option "least" must be a whole number from 1, received null.',
    );
  });

  it('works its defaults out once', () => {
    let times = 0;
    const counted = { unit: '' as const, resolve: () => (times += 1) };
    const once = { turn: withDefault(counted, 0) };
    expect([resolve(once, {}), resolve(once, {})]).toEqual([{ turn: 1 }, { turn: 1 }]);
    expect(times).toBe(1);
  });
});

describe('the check of one option', () => {
  it('takes a number up to the largest one, and no larger one', () => {
    expect(count(5).resolve(5, 'turns')).toBe(5);
    expect(() => count(5).resolve(6, 'turns')).toThrow(
      'Option "turns" must be a whole number from 1 to 5, received 6.',
    );
    expect(count().resolve(Number.MAX_SAFE_INTEGER, 'limit')).toBe(Number.MAX_SAFE_INTEGER);
  });

  it.each([Symbol('locks'), 'locks'])('takes %p for the name of a service', (name) => {
    expect(serviceName.resolve(name, 'name')).toBe(name);
  });

  it.each([[''], [7], [null], [{}]])('does not take %p for the name of a service', (name) => {
    expect(() => serviceName.resolve(name, 'name')).toThrow(
      'Option "name" must be a symbol, or a text that is not empty, received',
    );
  });

  it.each(['', 'lock:', '{a}', '{app}:', 'my:{app}:locks:'])(
    'takes %j for the beginning of keys',
    (prefix) => {
      expect(keyPrefix.resolve(prefix, 'keyPrefix')).toBe(prefix);
    },
  );

  it.each(['{', '}', '{}', '{{}}', '{a}{b}', 'a\nb', 7])(
    'does not take %j for the beginning of keys',
    (prefix) => {
      expect(() => keyPrefix.resolve(prefix, 'keyPrefix')).toThrow(LockConfigurationError);
    },
  );

  it.each([0, 0.01, 0.5])('takes %p for the drift of a clock', (drift) => {
    expect(clockDrift.resolve(drift, 'clockDrift')).toBe(drift);
  });

  it.each([[-0.01], [0.51], ['0.1'], [NaN]])(
    'does not take %p for the drift of a clock',
    (drift) => {
      expect(() => clockDrift.resolve(drift, 'clockDrift')).toThrow(
        'Option "clockDrift" must be a fraction from 0 to 0.5, such as 0.01, received',
      );
    },
  );
});

describe('a duration', () => {
  const CENTURY_MS = 3_155_760_000_000;
  const ANY = { atLeastMs: 0 };

  it('is at most 100 years', () => {
    expect(toMs(CENTURY_MS, 'ttl', ANY)).toBe(CENTURY_MS);
    expect(() => toMs(CENTURY_MS + 1, 'ttl', ANY)).toThrow(
      new LockConfigurationError(
        'Option "ttl" must be a duration of at most 100 years, received 3155760000001. A number is a number of milliseconds.',
      ),
    );
  });

  it('is read from a text of up to 100 characters', () => {
    expect(toMs('1s'.padStart(100, '0'), 'ttl', ANY)).toBe(1_000);
    expect(() => toMs('1s'.padStart(101, '0'), 'ttl', ANY)).toThrow(
      'Option "ttl" must be a duration of at least 0 ms, received',
    );
  });
});

describe('an option that does not exist', () => {
  const options = { ttl: optional(duration()), wait: optional(duration()) };
  const kind = { called: 'run()', options, elsewhere: { redis: 'Give it to LockModule.' } };

  it.each([
    ['tt', ' Did you mean "ttl"?'],
    ['wayz', ' Did you mean "wait"?'],
    ['xyl', ''],
    ['nothing', ''],
    ['redis', ' Give it to LockModule.'],
  ])('is refused, with a hint where one helps: %s', (name, hint) => {
    expect(() => {
      refuseUnknown(kind, { [name]: 1 });
    }).toThrow(
      new LockConfigurationError(
        `run() has no option "${name}".${hint} Its options are ttl, wait.`,
      ),
    );
  });

  it.each([
    ['autoExt', ' Did you mean "autoExtend"?'],
    ['autoEx', ''],
  ])('is taken for a long name up to three letters away: %s', (name, hint) => {
    expect(() => {
      refuseUnknown({ called: 'run()', options: { autoExtend: optional(flag) } }, { [name]: true });
    }).toThrow(`run() has no option "${name}".${hint} Its options are autoExtend.`);
  });

  it('may be there without a value where it belongs elsewhere, and only there', () => {
    expect(() => {
      refuseUnknown(kind, { redis: undefined, ttl: 1 });
    }).not.toThrow();
    expect(() => {
      refuseUnknown(kind, { colour: undefined });
    }).toThrow('run() has no option "colour".');
  });

  it.each([
    [null, 'null'],
    [5, '5'],
    ['ttl', '"ttl"'],
  ])('is not looked for in %p', (given, shown) => {
    expect(() => {
      refuseUnknown(kind, given as never);
    }).toThrow(
      new LockConfigurationError(`run() takes its options as an object, received ${shown}.`),
    );
  });
});

describe('an error about options', () => {
  const failWith = (error: Error) => () =>
    inPlace('Orders.ship', () => {
      throw error;
    });

  it('says where these stand', () => {
    expect(failWith(new LockConfigurationError('No "ttl".'))).toThrow(
      new LockConfigurationError('Orders.ship: No "ttl".'),
    );
    expect(failWith(new LockConfigurationError('No "ttl".'))).toThrow(LockConfigurationError);
  });

  it('is left as it is when it is about something else', () => {
    const other = new TypeError('x is not a function');
    expect(failWith(other)).toThrow(other);
    expect(other.message).toBe('x is not a function');
  });

  it('does not come from a check that passes', () => {
    expect(inPlace('Orders.ship', () => 'checked')).toBe('checked');
  });
});
