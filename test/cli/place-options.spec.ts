import { describe, expect, it } from '@jest/globals';
import { masterRemedy, optionsOfPlace } from '../../packages/cli/lib/place-options.js';
import { targetOf } from '../../packages/cli/lib/target.js';

const HERE = { database: 1, prefix: 'lock:' };
const at = (...redis: readonly string[]) => targetOf({ redis }, {});

describe('the options that lead to another place', () => {
  it.each([
    ['redis://one:6379/1', '--redis redis://one:6379/3'],
    ['redis://one', '--redis redis://one/3'],
    ['rediss://me:pass%2Fword@one:6379/1', "--redis 'rediss://***@one:6379/3'"],
    ['redis://one:6379/1?x=y', "--redis 'redis://one:6379/3?x=y'"],
    ['unix:///run/redis.sock?db=1', "--redis 'unix:///run/redis.sock?db=3'"],
    ['unix:///run/redis.sock', "--redis 'unix:///run/redis.sock?db=3'"],
  ])('from %s are %s', (url, options) => {
    const target = at(url);
    expect(optionsOfPlace(target, HERE, { ...HERE, database: 3 })).toBe(options);
    expect(optionsOfPlace(target, HERE, { database: 3, prefix: 'a b:' })).toBe(
      `${options} --prefix 'a b:'`,
    );
    expect(optionsOfPlace(target, HERE, { ...HERE, prefix: 'shop:lock:' })).toBe(
      '--prefix shop:lock:',
    );
  });

  it('name every master', () => {
    expect(
      optionsOfPlace(at('redis://one/1', 'redis://two/1'), HERE, { ...HERE, database: 3 }),
    ).toBe('--redis redis://one/3 --redis redis://two/3');
  });
});

describe('the options that lead to another prefix', () => {
  it('name nothing else, at a Cluster, too', () => {
    const target = targetOf({ redis: ['redis://one'], cluster: true }, {});
    expect(optionsOfPlace(target, HERE, { ...HERE, prefix: 'shop:' })).toBe('--prefix shop:');
  });
});

describe('the place that is shown', () => {
  it('has every address, the database and the prefix', () => {
    expect(at('redis://one', 'redis://me:secret@two:6380/3').shown).toBe(
      'one:6379, two:6380 (database 3), prefix lock:',
    );
  });
});

describe('the address of a master', () => {
  it.each([
    ['redis://replica:6379/2', 'replica:6379', 'redis://one:6380/2'],
    ['rediss://me:secret@replica/2', 'replica:6379', "'rediss://***@one:6380/2'"],
    ['unix:///run/redis.sock', '/run/redis.sock', 'redis://one:6380'],
  ])('replaces that of %s', (url, name, there) => {
    expect(masterRemedy(at('redis://other', url), name, 'one:6380')).toBe(
      `Give the address of the master: --redis ${there}`,
    );
  });
});
