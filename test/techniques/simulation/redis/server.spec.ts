import { describe, expect, it } from '@jest/globals';
import { acquireScript } from '../../../../lib/store/redis/scripts/acquire.js';
import {
  ModelError,
  RedisModel,
  UndeclaredKey,
  UnknownCommand,
  type Changes,
  type ModelCommand,
  type RedisModelOptions,
} from './model.js';
import { SortedSet } from './sorted-set.js';

const NOW_US = 1_700_000_000_000_000;

/** A server, and how to run commands on it at a time. */
function serverWith(options: RedisModelOptions = {}) {
  const model = new RedisModel(options);
  const surroundings = { publish: () => 0, subscribers: () => 0, acknowledgedBy: () => 2 };
  const run = (command: ModelCommand, nowUs = NOW_US): unknown =>
    model.execute(command, { ...surroundings, nowUs });
  return { model, run };
}

describe('A modelled server', () => {
  it('forgets its scripts and its run id at a restart, and its keys where it kept none', () => {
    const { model, run } = serverWith();
    const { runId } = model;
    run(['SET', 'a', 1]);
    run(['SCRIPT', 'LOAD', acquireScript.lua]);
    model.restart('data');
    expect(run(['GET', 'a'])).toBe('1');
    expect(model.runId).not.toBe(runId);
    expect(run(['INFO', 'server'])).toContain(`run_id:${model.runId}`);
    expect(run(['SCRIPT', 'EXISTS', acquireScript.sha])).toEqual([0]);
    expect(run(['EVALSHA', acquireScript.sha, 0])).toEqual(
      new ModelError('NOSCRIPT No matching script. Please use EVAL.'),
    );
    model.restart('nothing');
    expect(run(['GET', 'a'])).toBeNull();
  });

  it('lets scripts use declared keys only, if it is strict', () => {
    const { run } = serverWith({ isStrict: true });
    const script = `return redis.call('EXISTS', KEYS[1], KEYS[1] .. ARGV[1])`;
    expect(run(['EVAL', script, 2, 'a', 'ab', 'b'])).toBe(0);
    expect(() => run(['EVAL', script, 1, 'a', 'b'])).toThrow(UndeclaredKey);
    expect(run(['EVAL', `return redis.call('PUBLISH', 'channel', 'text')`, 0])).toBe(0);
  });

  it('keeps a key to the end of its last millisecond', () => {
    const { model, run } = serverWith();
    run(['SET', 'a', 1, 'PX', 5]);
    expect(run(['PTTL', 'a'], NOW_US + 5_999)).toBe(0);
    expect(model.keysAt(NOW_US + 5_999)).toHaveLength(1);
    expect(model.keysAt(NOW_US + 6_000)).toEqual([]);
    expect(run(['PTTL', 'a'], NOW_US + 6_000)).toBe(-2);
  });

  it('hands on what each command has changed, all of a script at once', () => {
    const handedOn: Changes[] = [];
    const master = serverWith({ onChanges: (changes) => handedOn.push(changes) });
    const replica = serverWith();
    master.run(['EVAL', `redis.call('SET', 'a', 1) redis.call('ZADD', 'z', 1, 'm')`, 0]);
    master.run(['GET', 'a']);
    master.run(['PEXPIRE', 'a', 5]);
    master.run(['ZADD', 'z', 2, 'm', 1, 'n']);
    master.run(['DEL', 'b']);
    expect(handedOn).toHaveLength(3);
    for (const changes of handedOn.slice(0, 2)) replica.model.apply(changes);
    expect(replica.model.keysAt(NOW_US)).toEqual([
      { key: 'a', type: 'string', value: '1', expiresAtMs: NOW_US / 1_000 + 5 },
      { key: 'z', type: 'zset', value: ['m', '1'], expiresAtMs: Infinity },
    ]);
    expect(replica.model.digest(NOW_US)).not.toBe(master.model.digest(NOW_US));
    replica.model.apply(handedOn[2] ?? []);
    expect(replica.model.digest(NOW_US)).toBe(master.model.digest(NOW_US));
    expect(replica.model.offset).toBe(master.model.offset);
  });

  it('hands on that a key has expired when it is looked at', () => {
    const handedOn: Changes[] = [];
    const { run } = serverWith({ onChanges: (changes) => handedOn.push(changes) });
    run(['SET', 'a', 1, 'PX', 5]);
    run(['GET', 'a'], NOW_US + 6_000);
    expect(handedOn[1]).toEqual([['a', undefined]]);
  });

  it('is copied with everything in it, and nothing is shared', () => {
    const { model, run } = serverWith();
    run(['ZADD', 'z', 1, 'm']);
    const copy = serverWith();
    copy.model.copyFrom(model);
    run(['ZADD', 'z', 2, 'n']);
    expect(copy.run(['ZCARD', 'z'])).toBe(1);
  });

  it('writes nothing as a replica, by scripts either', () => {
    const { model, run } = serverWith();
    model.role = 'slave';
    const refusal = "READONLY You can't write against a read only replica.";
    expect(run(['SET', 'a', 1])).toEqual(new ModelError(refusal));
    expect(run(['EVAL', `return redis.pcall('DEL', 'a').err`, 0])).toBe(refusal);
    expect(run(['INFO', 'replication'])).toContain('role:slave');
  });

  it('says how many replicas have what was written', () => {
    expect(serverWith().run(['WAIT', 1, 100])).toBe(2);
  });

  it.each([
    [['OBJECT', 'HELP']],
    [['SUBSCRIBE', 'a']],
    [['SET', 'a', 1, 'GET']],
    [['ZADD', 'a', 'GT', 1, 'm']],
    [['INFO', 'keyspace']],
    [['SELECT', 3]],
    [['EVAL', `return redis.pcall('WAIT', 1, 1)`, 0]],
  ] as const)('throws for what the model does not know: %j', (command) => {
    expect(() => serverWith().run(command)).toThrow(UnknownCommand);
  });
});

describe('A sorted set', () => {
  it('stays in order, however many come and go', () => {
    const set = new SortedSet();
    const scores = Array.from({ length: 500 }, (_, index) => (index * 7_919) % 500);
    scores.forEach((score, index) => set.set(`m${index}`, score >> 1));
    for (let index = 0; index < 500; index += 3) expect(set.delete(`m${index}`)).toBe(true);
    const left = scores
      .map((score, index) => ({ member: `m${index}`, score: score >> 1 }))
      .filter((_, index) => index % 3 !== 0)
      .sort((one, other) => one.score - other.score || (one.member < other.member ? -1 : 1));
    expect(set.slice(0)).toEqual(left);
    expect(set.slice(set.firstFrom(100, 'without'), set.firstFrom(101, 'without'))).toEqual(
      left.filter(({ score }) => score === 101),
    );
  });
});
