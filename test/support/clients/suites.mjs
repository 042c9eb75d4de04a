/** What runs with each client (`npm run test:clients`), by where Redis is and by what is tested. */

/** As HOLDFAST_CLIENT names them, with the packages that they are of. */
export const CLIENTS = {
  ioredis: 'ioredis',
  'ioredis-5': 'ioredis-5',
  iovalkey: 'iovalkey',
  'node-redis': 'redis',
  'node-redis-5': 'redis-5',
  glide: '@valkey/valkey-glide',
};

const TRANSPORTS =
  /^test\/claims\/transports\/(graphql|grpc|schedule|standalone|websockets|commander|cqrs|event-emitter|bullmq)\//;
const SHUTDOWN = /^test\/(nest\/module\/shutdown|claims\/track-record\/shutdown)\.spec/;
const FAULTS =
  /^test\/(once\/faults|techniques\/faults\/(detached|leaders)|techniques\/soak\/faults|claims\/track-record\/(connections|redis|holding|passing-errors|lost-lines))\.spec/;

/** The first that a spec is in. */
export const SUITES = [
  {
    topology: 'a Cluster',
    suite: 'conformance',
    specs:
      /^test\/(techniques\/conformance\/(cluster|fail-over)|store\/(sharded-line|sharded-channels|silent-masters))\.spec/,
  },
  {
    topology: 'Sentinel',
    suite: 'conformance',
    specs: /^test\/techniques\/conformance\/sentinel\./,
  },
  {
    topology: 'several masters',
    suite: 'conformance',
    specs:
      /^test\/(techniques\/conformance\/(quorum|quorum-dead|quorum-few|several-masters)|store\/quorum|claims\/track-record\/quorum-line)\.spec/,
  },
  {
    topology: 'one Redis',
    suite: 'conformance',
    specs: /^test\/techniques\/conformance\/(redis|detach|modes|once|places|guarded)\.spec/,
  },
  { topology: 'one Redis', suite: 'faults', specs: FAULTS },
  { topology: 'one Redis', suite: 'transports', specs: TRANSPORTS },
  { topology: 'one Redis', suite: 'shutdown', specs: SHUTDOWN },
  {
    topology: 'one Redis',
    suite: 'store and engine',
    specs:
      /^test\/(store\/(redis-scripts|plain|line|holders|once-scripts|shared-calls|redis-connections|connect-problems|credentials|redis-permissions|restart-guard|replicas|redis-inbox|forbidden-keys|transfer|older-data|kept-limits|clean-up|withdrawal)|queue\/(waiting|readers|lines|handoff|contended)|sections\/.*|engine\/(protocol|lock-engine)|leader\/processes|nest\/module\/(redis|health)|once\/(worker|run-once)|lease\/min-hold|claims\/track-record\/(waiting|messages-are-hints|messages|dead-places|retry-after))\.spec/,
  },
];

/** What is worth the time where there is little: the promises of a store, and what is done with a broken connection. */
export const CORE =
  /^test\/(techniques\/conformance\/redis|store\/redis-scripts|claims\/track-record\/passing-errors)\.spec/;

/** The suite of a spec; `undefined` for one that says nothing about clients. */
export const suiteOf = (spec) => SUITES.find(({ specs }) => specs.test(spec));
