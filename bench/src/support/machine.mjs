import { cpus, totalmem } from 'node:os';

/** What the figures depend on. */
export function machine(redisVersion) {
  const memory = Math.round(totalmem() / 2 ** 30);
  const [{ model }] = cpus();
  const day = new Date().toISOString().slice(0, 10);
  return `${model.trim()}, ${cpus().length} cores, ${memory} GiB, Node ${process.version}, Redis ${redisVersion}, ${day}`;
}
