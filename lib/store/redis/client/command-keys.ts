import type { Command } from './redis-client.js';

type Part = string | number;

const first = (args: readonly Part[]): readonly Part[] => args.slice(0, 1);
const all = (args: readonly Part[]): readonly Part[] => args;
const none = (): readonly Part[] => [];
const upTo =
  (end: number) =>
  (args: readonly Part[]): readonly Part[] =>
    args.slice(0, end);
const from =
  (start: number) =>
  (args: readonly Part[]): readonly Part[] =>
    args.slice(start);
/** The number of keys stands at that position, and the keys behind it. */
const counted =
  (at: number) =>
  (args: readonly Part[]): readonly Part[] =>
    args.slice(at + 1, at + 1 + Number(args[at]));
const everyOther = (args: readonly Part[]): readonly Part[] =>
  args.filter((_, index) => index % 2 === 0);
/** The first half of what stands behind the word. */
function ofStreams(args: readonly Part[]): readonly Part[] {
  const names = args.slice(args.findIndex((arg) => /^streams$/i.test(String(arg))) + 1);
  return names.slice(0, names.length / 2);
}
/** The first argument, and what stands behind STORE or STOREDIST. */
const andStored = (args: readonly Part[]): readonly Part[] =>
  args.filter((_, index) => index === 0 || /^store(dist)?$/i.test(String(args[index - 1])));

/** Finds the keys of commands that have others than their first argument. */
const PLACES: readonly (readonly [(args: readonly Part[]) => readonly Part[], string])[] = [
  [all, 'del unlink exists touch mget watch pfcount pfmerge'],
  [all, 'sinter sunion sdiff sinterstore sunionstore sdiffstore'],
  [everyOther, 'mset msetnx'],
  [upTo(2), 'rename renamenx copy smove rpoplpush brpoplpush lmove blmove zrangestore lcs'],
  [upTo(2), 'geosearchstore'],
  [upTo(-1), 'blpop brpop bzpopmin bzpopmax'],
  [from(1), 'bitop'],
  [(args) => args.slice(1, 2), 'object xgroup xinfo memory'],
  [counted(0), 'zunion zinter zdiff zintercard sintercard lmpop zmpop'],
  [counted(1), 'eval evalsha eval_ro evalsha_ro fcall fcall_ro blmpop bzmpop'],
  [(args) => [...first(args), ...counted(1)(args)], 'zunionstore zinterstore zdiffstore'],
  [ofStreams, 'xread'],
  // Behind GROUP and two names, which may be any.
  [(args) => ofStreams(args.slice(3)), 'xreadgroup'],
  [andStored, 'sort georadius georadiusbymember'],
  [
    none,
    'ping echo time info scan keys randomkey dbsize wait waitaof select auth hello quit reset',
  ],
  [none, 'publish pubsub subscribe psubscribe unsubscribe punsubscribe client cluster config'],
  [none, 'command acl script function role multi exec discard unwatch asking readonly readwrite'],
  [
    none,
    'flushall flushdb swapdb save bgsave bgrewriteaof lastsave shutdown slowlog latency module',
  ],
];

const BY_NAME = new Map(
  PLACES.flatMap(([keysOf, names]) => names.split(' ').map((name) => [name, keysOf] as const)),
);

/** The keys that a command names. Takes the first argument for a key where it does not know the command, as those of modules. */
export const commandKeys = ([name, ...args]: Command): readonly string[] =>
  (BY_NAME.get(name.toLowerCase()) ?? first)(args).map(String);
