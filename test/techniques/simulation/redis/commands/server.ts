import { fromBytes } from '../bytes.js';
import { ModelError, NO_INTEGER, OK, Status, UnknownCommand, type RawReply } from '../replies.js';
import { reads, type ChannelKind, type Command, type Facts, type Target } from './command.js';
import { integerOf } from './parse.js';

/** What is about the server and not about its keys. */
export const SERVER_COMMANDS: Readonly<Record<string, Command>> = {
  PING: reads(-1, (_, [, message]) => message ?? new Status('PONG')),
  TIME: reads(1, ({ surroundings: { nowUs } }) => [
    String(Math.floor(nowUs / 1_000_000)),
    String(nowUs % 1_000_000),
  ]),
  INFO: reads(-1, ({ facts }, [, ...sections]) =>
    (sections.length > 0 ? sections : Object.keys(SECTIONS))
      .map((section) => described(section.toLowerCase(), facts))
      .join('\r\n'),
  ),
  PUBLISH: reads(3, (target, argv) => publish(target, argv, 'plain')),
  SPUBLISH: reads(3, (target, argv) => publish(target, argv, 'sharded')),
  PUBSUB: reads(-2, ({ surroundings }, [, what = '', ...channels]) => {
    const kind = KINDS[what.toUpperCase()];
    if (kind === undefined) throw new UnknownCommand(`PUBSUB ${what}`);
    return channels.flatMap((channel) => [
      channel,
      surroundings.subscribers(fromBytes(channel), kind),
    ]);
  }),
  SELECT: reads(2, (_, [, text = '']) => {
    const database = integerOf(text);
    if (database === undefined) return NO_INTEGER;
    if (database < 0 || database > 15) return new ModelError('ERR DB index is out of range');
    if (database === 0) return OK;
    throw new UnknownCommand('SELECT of a database other than 0: the model has one');
  }),
  WAIT: {
    ...reads(3, ({ surroundings, facts }, [, count = '', timeout = '']) => {
      if (integerOf(count) === undefined || integerOf(timeout) === undefined) return NO_INTEGER;
      return surroundings.acknowledgedBy?.(facts.offset) ?? 0;
    }),
    isForScripts: false,
  },
};

const KINDS: Readonly<Record<string, ChannelKind>> = { NUMSUB: 'plain', SHARDNUMSUB: 'sharded' };

/** Of INFO, what the library reads. */
const SECTIONS: Readonly<Record<string, (facts: Facts) => readonly string[]>> = {
  server: ({ version, runId }) => [
    '# Server',
    `redis_version:${version}`,
    'redis_mode:standalone',
    `run_id:${runId}`,
  ],
  memory: ({ memory }) => [
    '# Memory',
    `maxmemory:${memory === 'full' ? 1 : 0}`,
    'maxmemory_policy:noeviction',
  ],
  replication: ({ role, connectedReplicas, offset }) => [
    '# Replication',
    `role:${role}`,
    `connected_slaves:${connectedReplicas}`,
    `master_repl_offset:${offset}`,
  ],
  cluster: ({ isClusterNode }) => ['# Cluster', `cluster_enabled:${isClusterNode ? 1 : 0}`],
};

function described(section: string, facts: Facts): string {
  const lines = SECTIONS[section];
  if (lines === undefined) throw new UnknownCommand(`INFO ${section}`);
  return `${lines(facts).join('\r\n')}\r\n`;
}

function publish(
  { surroundings }: Target,
  [, channel = '', message = '']: readonly string[],
  kind: ChannelKind,
): RawReply {
  return surroundings.publish(fromBytes(channel), fromBytes(message), kind);
}
