/** Before all tests, however jest was started: what their child processes run, and the server that they start. */
import { compiledProject } from '../../scripts/compile.mjs';
import { ensureRedisServer } from '../../scripts/redis-server.mjs';

export default function setUp() {
  // The workers of jest inherit these. Two samples that installed a server at the same time would fail.
  process.env.HOLDFAST_COMPILED = compiledProject();
  process.env.REDIS_SERVER_BIN ??= ensureRedisServer();
}
