import { register } from 'node:module';

/** As on a machine that has no Nest: whoever asks for it is refused. */
const WITHOUT_NEST = `export const resolve = (specifier, context, next) => {
  if (specifier.startsWith('@nestjs/')) throw new Error('Nest was asked for, by ' + context.parentURL);
  return next(specifier, context);
};`;
register(`data:text/javascript,${encodeURIComponent(WITHOUT_NEST)}`);

const { LockEngine } = await import('../../../lib/engine/lock-engine.js');
const { LockNotAcquiredError } = await import('../../../lib/errors.js');
const { systemRuntime } = await import('../../../lib/time/runtime.js');

const said: string[] = [];
const log = {
  warn: (message: string) => void said.push(message),
  error: (message: unknown) => void said.push(String(message)),
};
const locks = new LockEngine({ store: 'memory' }, { runtime: systemRuntime, log });
await locks.open();
const lock = await locks.acquire('order:42');
const refusal: unknown = await locks
  .acquire('order:42', { wait: 0 })
  .catch((error: unknown) => error);
if (!(refusal instanceof LockNotAcquiredError)) throw new Error('It was not refused.');
const health = await locks.health();
await locks.shutdown(0);

console.log(
  JSON.stringify({
    status: refusal.getStatus(),
    code: refusal.getResponse().code,
    name: refusal.name,
    message: refusal.message,
    hasMessage: (refusal.stack ?? '').includes(refusal.message),
    hasDetail: refusal.detail.includes('held for'),
    json: refusal,
    hasQuorum: health.hasQuorum,
    isHeld: lock.isHeld,
    said: said.length,
  }),
);
