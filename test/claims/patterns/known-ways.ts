import { lockKey, LockStoreUnavailableError, type LockService } from 'nestjs-holdfast';

export type Work = (signal: AbortSignal) => Promise<void>;

// recipe
/** Each process calls this. One of them imports, and the others are its backups. */
export async function importOnce(locks: LockService, work: Work): Promise<string> {
  const options = { ttl: '5s', attempts: 3, wait: 'forever' } as const;
  const { outcome } = await locks.runOnce('import', options, ({ signal }) => work(signal));
  return outcome; // 'completed', 'done-elsewhere', 'exhausted' or 'superseded'
}

// recipe
export async function writeReport(locks: LockService, work: Work): Promise<string> {
  const result = await locks.tryRun('report', ({ signal }) => work(signal));
  return result.acquired ? 'written' : `try again in ${String(result.retryAfterMs)} ms`;
}

// recipe
export async function print(locks: LockService, work: Work): Promise<void> {
  const timeouts = { wait: '5s', ttl: '2s', autoExtend: false } as const;
  await locks.run('printer', timeouts, ({ signal }) => work(signal));
}

// recipe
/** The service has `redis: ['redis://a:6379', 'redis://b:6379', 'redis://c:6379']`. */
export async function charge(locks: LockService, orderId: string, work: Work): Promise<string> {
  try {
    await locks.run(lockKey`order:${orderId}`, { wait: '1s' }, ({ signal }) => work(signal));
    return 'charged';
  } catch (error) {
    if (error instanceof LockStoreUnavailableError) return 'two masters are down: try again later';
    throw error;
  }
}
