import { describe, expect, it } from '@jest/globals';
import type { LockSummary } from '../../lib/admin/lock-admin.types.js';
import { LockStoreUnavailableError } from '../../lib/errors.js';
import { clocks } from '../../packages/cli/lib/doctor/checks/clocks.js';
import { grants } from '../../packages/cli/lib/doctor/checks/grants.js';
import { masters } from '../../packages/cli/lib/doctor/checks/masters.js';
import { services } from '../../packages/cli/lib/doctor/checks/services.js';
import { untilConnected, withoutEnd } from '../../packages/cli/lib/doctor/connection-end.js';
import type { Found } from '../../packages/cli/lib/doctor/finding.js';
import type { Answer, Server } from '../../packages/cli/lib/doctor/server.js';
import type { CommonCheck, Subject } from '../../packages/cli/lib/doctor/subject.js';
import { elsewhere, placesElsewhere } from '../../packages/cli/lib/elsewhere.js';
import { withServers } from '../../packages/cli/lib/servers.js';
import { targetOf, type Target } from '../../packages/cli/lib/target.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const answered = (value: unknown): Answer => ({ status: 'answered', value });
const REFUSED: Answer = { status: 'failed', kind: 'error', message: 'NOPERM' };
const ENDS = 'the server, or a proxy before it, ends each connection at once';

const found = async (check: CommonCheck, subject: object): Promise<readonly Found[]> =>
  check.examine(subject as Subject);

describe('the clocks', () => {
  const REMEDY = 'Run a time service (NTP, chrony) on all of them.';
  const OK: Found = {
    level: 'ok',
    text: 'The clocks of the servers and of this machine agree to within a second.',
  };
  const apart = (time: string): Found => ({
    level: 'warning',
    text: `The clocks of the servers are ${time} apart: each lock takes a round trip more, and fencing tokens run ahead.`,
    remedy: REMEDY,
  });
  const wrong = (how: string): Found => ({
    level: 'warning',
    text: `A clock of a server is ${how} this machine's: "since" is shown wrong here by as much. Locks are not affected.`,
    remedy: REMEDY,
  });

  /** A server whose clock is ahead by that much, and which is asked five times. */
  function ahead(offsetMs: number, [request = 0, answer = 0] = [], others = 0): Server {
    const runtime = new VirtualRuntime();
    let asked = 0;
    const ask = async (): Promise<Answer> => {
      asked += 1;
      // The third answer is the quickest one; the others are shown wrong by half of what they take longer.
      const late = asked === 3 ? 0 : others;
      runtime.block(request + late);
      const atMs = runtime.now().wallMs + offsetMs;
      runtime.block(answer);
      return answered([String(Math.floor(atMs / 1_000)), String((atMs % 1_000) * 1_000)]);
    };
    return { runtime, ask } as unknown as Server;
  }
  const silent = { runtime: new VirtualRuntime(), ask: async () => REFUSED } as unknown as Server;

  it.each<[string, Server[], Found[]]>([
    ['agree', [ahead(0), ahead(0)], [OK]],
    ['agree to within a second', [ahead(-500), ahead(500)], [OK]],
    ['are just a second wrong', [ahead(1_000)], [OK]],
    ['are a second and a bit ahead', [ahead(1_001)], [wrong('1 s ahead of')]],
    ['are behind', [ahead(-2_000), ahead(-1_500)], [wrong('2 s behind')]],
    ['are ahead', [ahead(3_000), ahead(2_500)], [wrong('3 s ahead of')]],
    ['are apart', [ahead(-700), ahead(500)], [apart('1 s')]],
    [
      'are apart, one of them more',
      [ahead(-5_000), ahead(4_000)],
      [apart('9 s'), wrong('5 s behind')],
    ],
    ['are not all known', [silent, ahead(2_000)], [wrong('2 s ahead of')]],
    ['are not known', [silent], []],
    ['are asked by messages that take as long to and fro', [ahead(0, [4_000, 4_000])], [OK]],
    ['are asked by messages that are quick once', [ahead(0, [0, 0], 9_000)], [OK]],
  ])('that %s are judged', async (_, servers, findings) => {
    expect(await found(clocks, { servers, kind: 'several masters' })).toEqual(findings);
  });

  it('of a Cluster may be apart', async () => {
    const servers = [ahead(-700), ahead(500)];
    expect(await found(clocks, { servers, kind: 'a Cluster' })).toEqual([OK]);
  });
});

describe('the masters', () => {
  it('are best an odd number', async () => {
    expect(await found(masters, { kind: 'several masters', nodes: 4 })).toEqual([
      {
        level: 'warning',
        text: '4 independent masters: 1 of them may fail.',
        remedy: 'Take an odd number: one more allows one more to fail, one less allows as many.',
      },
    ]);
  });
});

describe('the grants', () => {
  const granted = async (hasQuorum: boolean, ...problems: readonly (string | undefined)[]) => {
    const nodes = problems.map((problem, index) => ({ node: `n${String(index)}`, problem }));
    let asked = 0;
    const health = async () => {
      asked += 1;
      return { nodes, quorum: 2, hasQuorum };
    };
    return { findings: await found(grants, { session: { locks: { health } } }), asked };
  };
  const refuses = (node: string, why: string): Found => ({
    level: 'error',
    text: `${node} grants no locks: ${why}.`,
    remedy: 'See what is said of this server.',
  });

  it('are in order where each server grants', async () => {
    expect(await granted(true, undefined, undefined)).toEqual({
      findings: [{ level: 'ok', text: 'A lock was granted and released at each server.' }],
      asked: 1,
    });
  });

  it('name the server that refuses, and whether locks are granted', async () => {
    expect(await granted(true, undefined, 'OOM at 1.5 GB.')).toEqual({
      findings: [refuses('n1', 'OOM at 1.5 GB')],
      asked: 1,
    });
    expect(await granted(false, 'Connection is closed.', 'EPIPE', undefined)).toEqual({
      findings: [
        ...[refuses('n0', ENDS), refuses('n1', ENDS)],
        {
          level: 'error',
          text: 'No lock can be granted now: 2 of the places that vote have to agree.',
          remedy: 'Correct what is wrong above.',
        },
      ],
      asked: 3,
    });
  });
});

describe('the services', () => {
  const TARGET = targetOf({ redis: ['redis://one:6379'] }, {});
  const unavailable = (message: string) =>
    new LockStoreUnavailableError({
      ...{ operation: 'list', keys: [] },
      nodes: ['one', 'two'].map((node) => ({ node, kind: 'error', message: `${node} ${message}` })),
    });
  const service = (index: number, isUnresponsive: boolean) => ({
    ...{ application: 'orders', host: `web-${String(index)}`, pid: 7, isUnresponsive },
  });
  const reported = async (
    all: readonly object[] | Error,
    listed: readonly unknown[] | Error = [],
  ) => {
    async function* list(): AsyncGenerator<LockSummary, void> {
      if (listed instanceof Error) throw listed;
      yield* listed as readonly LockSummary[];
    }
    const instances = async () => {
      if (all instanceof Error) throw all;
      return all;
    };
    const ask = async (command: string): Promise<Answer> =>
      answered(command === 'scan' ? ['0', ['shop:{instances}']] : 'OK');
    const server = {
      ...{ runtime: new VirtualRuntime(), database: 0, prefix: 'lock:', isClusterNode: false },
      ...{ ask, info: async () => answered('db0:keys=1\r\n') },
    };
    return found(services, {
      target: TARGET,
      session: { admin: { instances, list } },
      servers: [server],
    });
  };
  const range = (length: number, isUnresponsive: boolean) =>
    Array.from({ length }, (_, index) => service(index, isUnresponsive));

  it('that report are counted', async () => {
    expect(await reported(range(1, false))).toEqual([
      { level: 'ok', text: '1 service described itself in the last hour, and all report.' },
    ]);
    expect(await reported(range(2, false))).toEqual([
      { level: 'ok', text: '2 services described themselves in the last hour, and all report.' },
    ]);
  });

  it('that are unresponsive are a warning, of which five are named', async () => {
    const [all] = await reported([service(9, false), ...range(6, true)]);
    const names = range(5, true).map(({ host }) => `orders on ${host}, pid 7`);
    expect(all).toEqual({
      level: 'warning',
      text: `7 services described themselves in the last hour, 6 of them unresponsive: ${names.join('; ')}. They are frozen, cut off or dead, or a server refuses what they write.`,
      remedy: 'See "instances". What a dead one holds ends with its TTL, or by "release-instance".',
    });
  });

  it('that are elsewhere are named, and whether keys are here', async () => {
    const places =
      'another server, database or prefix? Services report in database 0, prefix shop:.';
    const remedy = expect.stringMatching(/ Give --prefix shop:$/);
    const none = { level: 'warning', text: `0 keys and 0 services here: ${places}`, remedy };
    const some = { ...none, text: `No service reports here: ${places}` };
    expect(await reported([])).toEqual([none]);
    expect(await reported([], [{ key: 'a' }])).toEqual([some]);
    // Where they cannot be listed, there may be some.
    expect(await reported([], unavailable('is away'))).toEqual([some]);
    await expect(reported([], new TypeError('planted'))).rejects.toThrow('planted');
  });

  it('are not known where Redis is not available', async () => {
    expect(await reported(unavailable('is away'))).toMatchObject([
      { level: 'unknown', text: expect.stringContaining('(one is away; two is away)') },
    ]);
    await expect(reported(new TypeError('planted'))).rejects.toThrow('planted');
  });
});

describe('a server that is away', () => {
  it('is an error, with what to check', async () => {
    const away = [{ node: 'one:6379', message: 'connect to 10.0.0.1 failed.' }];
    const redis = {
      connected: async (work: (reached: object) => unknown) => work({ servers: [], away }),
    } as unknown as Target['redis'];
    expect(await withServers({ redis }, new VirtualRuntime(), async (reached) => reached)).toEqual({
      servers: [],
      away: [
        {
          ...{ check: 'connection', server: 'one:6379', level: 'error' },
          text: 'It cannot be used: connect to 10.0.0.1 failed.',
          remedy: 'Check address, password, database and network. No lock is granted there.',
        },
      ],
    });
  });
});

describe('a connection that ends', () => {
  it.each(['Connection is closed.', 'socket close', 'read ECONNRESET', 'write EPIPE'])(
    'is known by the message %s',
    (message) => {
      expect(withoutEnd(message)).toBe(ENDS);
    },
  );

  it('is not taken for what else a message says', () => {
    for (const message of ['WRONGPASS', 'the shop is disclosed', 'closer'])
      expect(withoutEnd(message)).toBe(message);
  });

  it.each<[string[][], number]>([
    [[[]], 1],
    [[['EPIPE'], []], 2],
    [[['EPIPE'], ['EPIPE', 'NOPERM'], ['EPIPE'], []], 3],
    [[['NOPERM'], []], 1],
  ])('is tried three times at most: %j', async (looks, times) => {
    let asked = 0;
    const last = await untilConnected(
      async () => looks[asked++] ?? [],
      (messages) => messages,
    );
    expect([last, asked]).toEqual([looks[times - 1], times]);
  });
});

describe('a search for services elsewhere', () => {
  /** A server with these indexes in its databases. */
  function serverWith(
    databases: Readonly<Record<number, readonly string[]>>,
    { isClusterNode = false, forbidden = '' } = {},
  ) {
    const asked: string[] = [];
    let selected = 0;
    const ask = async (...words: readonly unknown[]): Promise<Answer> => {
      asked.push(words.join(' '));
      const [command, number] = words;
      if (command === forbidden) return REFUSED;
      if (command === 'scan')
        return answered(['0', (databases[selected] ?? []).map((prefix) => `${prefix}{instances}`)]);
      selected = Number(number);
      return answered('OK');
    };
    const info = async (section: string): Promise<Answer> =>
      section === 'keyspace' && forbidden !== 'info'
        ? answered(
            Object.keys(databases)
              .map((db) => `db${db}:keys=1`)
              .join('\r\n'),
          )
        : REFUSED;
    const server = {
      ...{ runtime: new VirtualRuntime(), database: 0, prefix: 'lock:', isClusterNode, ask, info },
    } as unknown as Server;
    return { server, asked };
  }
  const SCAN = 'scan 0 match *{instances} count 1000';

  it('looks into each database, and returns to its own', async () => {
    const { server, asked } = serverWith({ 0: ['lock:', 'a:'], 3: ['lock:'] });
    expect(await placesElsewhere([server])).toEqual([
      { database: 0, prefix: 'a:' },
      { database: 3, prefix: 'lock:' },
    ]);
    expect(asked).toEqual(['select 0', SCAN, 'select 3', SCAN, 'select 0']);
  });

  it('has one database at a node of a Cluster, which is not selected', async () => {
    const { server, asked } = serverWith({ 0: ['a:'], 3: [] }, { isClusterNode: true });
    expect(await placesElsewhere([server])).toEqual([{ database: 0, prefix: 'a:' }]);
    expect(asked).toEqual([SCAN]);
  });

  it('finds what it may find', async () => {
    const at = { 0: ['a:'], 3: ['b:'] };
    const own = [{ database: 0, prefix: 'a:' }];
    expect(await placesElsewhere([serverWith(at, { forbidden: 'info' }).server])).toEqual(own);
    expect(await placesElsewhere([serverWith(at, { forbidden: 'select' }).server])).toEqual([]);
    expect(await placesElsewhere([serverWith(at, { forbidden: 'scan' }).server])).toEqual([]);
  });

  it('names five places', () => {
    const { server } = serverWith({});
    const target = targetOf({ redis: ['redis://one:6379'] }, {});
    const places = [1, 2, 3, 4, 5, 6].map((database) => ({ database, prefix: 'lock:' }));
    const named = places
      .slice(0, 5)
      .map(({ database }) => `database ${String(database)}, prefix lock:`)
      .join('; ');
    expect(elsewhere(target, [server], places, 'keys').text).toBe(
      `No service reports here: another server, database or prefix? Services report in ${named}; ….`,
    );
  });
});
