/**
 * The rooms of `lib/`, from the lowest to the highest, and what each may import of the others. `.dependency-cruiser.mjs` makes its
 * rules of it, and docs/internals/architecture.md its table (test/claims/docs/rooms.spec.ts).
 */
export const ROOMS = {
  collections: [],
  time: ['collections'],
  errors: [],
  key: ['errors', 'time'],
  observe: ['collections', 'errors', 'time'],
  store: ['collections', 'errors', 'observe', 'time'],
  options: ['errors', 'store'],
  lease: ['collections', 'errors', 'observe', 'options', 'store', 'time'],
  queue: ['collections', 'errors', 'lease', 'observe', 'options', 'store', 'time'],
  sections: ['errors', 'lease', 'observe', 'queue', 'store', 'time'],
  once: [
    'collections',
    'errors',
    'lease',
    'observe',
    'options',
    'queue',
    'sections',
    'store',
    'time',
  ],
  leader: ['errors', 'observe', 'options', 'queue', 'sections', 'time'],
  engine: [
    'collections',
    'errors',
    'key',
    'leader',
    'lease',
    'observe',
    'once',
    'options',
    'queue',
    'sections',
    'store',
    'time',
  ],
  nest: [
    'engine',
    'errors',
    'key',
    'leader',
    'lease',
    'once',
    'options',
    'queue',
    'sections',
    'time',
  ],
  worker: ['errors', 'once', 'options'],
  swagger: ['errors'],
  opentelemetry: ['observe'],
  prometheus: ['observe'],
  terminus: ['engine', 'errors', 'nest', 'options', 'store'],
  admin: ['engine', 'errors', 'key', 'nest', 'queue', 'store'],
  tools: ['admin', 'engine', 'errors', 'observe', 'options', 'store', 'time'],
  testing: ['errors', 'key', 'nest', 'observe', 'options', 'store', 'time'],
};

/** The packages beside the library, and which entries of others they import. */
export const PACKAGES = {
  board: ['nestjs-holdfast', 'nestjs-holdfast/admin'],
  cli: ['nestjs-holdfast/admin', 'nestjs-holdfast/tools', '@nestjs-holdfast/migrate'],
  migrate: [],
  redlock: ['nestjs-holdfast', 'nestjs-holdfast/tools'],
};

/** The rooms of the Redis store, likewise. */
export const REDIS_ROOMS = {
  lua: [],
  scripts: ['lua'],
  client: ['scripts'],
  wakeups: ['client'],
  node: ['client', 'scripts', 'wakeups'],
  quorum: ['client', 'node', 'scripts'],
};
