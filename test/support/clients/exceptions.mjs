/** All: a client of ioredis is another location than a URL, too. */
const ALL = ['ioredis', 'ioredis-5', 'iovalkey', 'node-redis', 'node-redis-5', 'glide'];

const UNLIKE_IOREDIS = ['node-redis', 'node-redis-5', 'glide'];

/**
 * Tests that say nothing of other clients, by spec and the beginning of their names, and why. The counts are in
 * docs/internals/runs.md.
 */
const EXCEPTIONS = [
  {
    clients: ALL,
    specs: /^test\/store\/(redis-location|eval-sha|tls-hints|retry-delay)\./,
    reason: 'the test is about how ioredis reads an address or sends a command',
  },
  {
    clients: ALL,
    specs: /^test\/store\/credentials\./,
    tests: /the options that were handed over$/,
    reason: 'the application changes an object of options, and gives no client',
  },
  {
    clients: ALL,
    specs: /^test\/store\/redis-connections\./,
    tests: /^options for Sentinel are kept/,
    reason: 'the test is about the options of ioredis',
  },
  {
    clients: ['iovalkey'],
    specs: /^test\/store\/sharded-line\./,
    tests: /follows the successor of a master that died/,
    reason:
      'iovalkey sends the first request after a fail-over of a Cluster to the master that died, where ioredis asks another one',
  },
  {
    clients: ['glide'],
    specs: /^test\/store\/connect-problems\./,
    tests: /^a call to a Cluster of which no node can be asked says why/,
    reason: 'the test is about the text of an error of ioredis',
  },
  {
    clients: UNLIKE_IOREDIS,
    specs: /^test\/store\/credentials\./,
    tests: /(of a Cluster: the options of its client|of a Cluster: its nodes)$/,
    reason: 'the application changes options of a client of ioredis',
  },
  {
    clients: UNLIKE_IOREDIS,
    specs: /^test\/store\/silent-masters\./,
    tests: /is replaced while ioredis waits over it/,
    reason: 'the test is about a request that only ioredis sends',
  },
  {
    clients: UNLIKE_IOREDIS,
    specs: /^test\/store\/sharded-line\./,
    tests: /follows a slot of which it had heard at a node that is not its master any more/,
    reason: 'the test changes the adapter of ioredis',
  },
  {
    clients: ['node-redis-5'],
    specs: /^test\/techniques\/conformance\/sentinel\./,
    reason: 'a Sentinel client of node-redis 5 is refused, because it does not tell its options',
  },
  {
    clients: ['node-redis-5'],
    specs: /^test\//,
    tests: /[Ss]entinel/,
    reason: 'a Sentinel client of node-redis 5 is refused, because it does not tell its options',
  },
  {
    clients: ['node-redis-5'],
    specs: /^test\/store\/redis-scripts\./,
    tests: /is not taken for a yes: \+QUEUED/,
    reason:
      'the server of the test does not know HELLO, with which node-redis 5 asks for RESP2; Redis has known it since 6.0',
  },
  {
    clients: ['glide'],
    specs: /^test\/store\/redis-connections\./,
    tests: /or falls silent is given up after some seconds/,
    reason:
      'a silent connection of GLIDE is replaced within the time limit, so the request fails with the connection',
  },
  {
    clients: ['glide'],
    specs: /^test\/claims\/transports\/websockets\//,
    tests: /^a gateway of ws tells a client that the store is out/,
    reason: 'the first request after an outage may fail, because GLIDE does not tell of a break',
  },
  {
    clients: ['glide'],
    specs: /^test\/store\/replicas\./,
    tests: /^a Cluster with a replica for each master/,
    reason: 'the option "replicas" is refused for a Cluster client of GLIDE',
  },
  {
    clients: ['glide'],
    specs: /^test\/store\/sharded-channels\./,
    reason:
      'with GLIDE, Holdfast uses plain channels on a Cluster: GLIDE does not tell when a sharded one moves',
  },
  {
    clients: ['glide'],
    specs: /^test\/store\/sharded-line\./,
    tests:
      /^a line on a Cluster (is first in, first out|TR-23|sees to it|follows a slot that moves|follows the successor)|^a user of a Cluster who must not s/,
    reason:
      'with GLIDE, Holdfast uses plain channels on a Cluster: GLIDE does not tell when a sharded one moves',
  },
  {
    clients: ['glide'],
    specs: /^test\/nest\/module\/shutdown\./,
    tests: /closes every service of an application with several/,
    reason: 'GLIDE closes its connections a moment after its client is closed',
  },
  {
    clients: ['glide'],
    specs: /^test\/store\/(restart-guard|older-data)\./,
    tests:
      /is kept when a majority of the nodes is restarted at once, and nobody else|has lost the locks of the last moment/,
    reason: 'GLIDE does not tell of a break: a request within about a second after it may fail',
  },
  {
    clients: ['glide'],
    specs: /^test\/store\/redis-scripts\./,
    tests: /is not taken for a yes: \+QUEUED/,
    reason: 'GLIDE does not tell the text of a reply that is none to ZRANGE; no lock is granted',
  },
  {
    clients: ['glide'],
    specs: /^test\/store\/(redis-permissions|sharded-line)\./,
    tests: /without the permission to subscribe|who has no channels/,
    reason: 'GLIDE does not tell that SUBSCRIBE was refused: the log reports it after five tries',
  },
  {
    clients: ['glide'],
    specs: /^test\/store\/redis-inbox\./,
    tests: /that cannot be opened again|that is closed asks no instance/,
    reason:
      'GLIDE does not tell that SUBSCRIBE was refused after a break: callers ask again after 5 s',
  },
];

/** Why a test is left out with a client; `undefined` where it is not. */
export function exceptionFor(client, spec, title) {
  const found = EXCEPTIONS.find(
    ({ clients, specs, tests }) =>
      clients.includes(client) && specs.test(spec) && (tests === undefined || tests.test(title)),
  );
  return found?.reason;
}
