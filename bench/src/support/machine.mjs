import { cpus, platform, release, totalmem } from 'node:os';

/** What the figures depend on. */
export function machine(redisVersion, { quick }) {
  return {
    date: new Date().toISOString(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    os: `${platform()} ${release()}`,
    node: process.version,
    redis: redisVersion,
    quick,
  };
}
