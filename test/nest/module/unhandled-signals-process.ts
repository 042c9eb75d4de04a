/** An application in a process, and another one in a worker thread of it. Prints what each of the two warns of. */
import { once } from 'node:events';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { Test } from '@nestjs/testing';
import { LockModule, LockService } from 'nestjs-holdfast';
import { MemoryDriver } from '../../driver/memory-driver.js';
import { VirtualRuntime } from '../../support/virtual-runtime.js';

process.env.NODE_ENV = 'production';
const clock = new VirtualRuntime();
const store = new MemoryDriver(new Map(), () => clock.now().monotonicMs);
const locks = new LockService({ store }, { runtime: clock });
const warnings: unknown[] = [];
const record = (message: unknown): void => void warnings.push(message);
const ignore = (): void => undefined;
const app = await Test.createTestingModule({ imports: [LockModule.forRoot({ store: 'memory' })] })
  .overrideProvider(LockService)
  .useValue(locks)
  .setLogger({ log: ignore, warn: record, error: record })
  .compile();
await app.init();
await clock.advance(10_000);
await locks.run('order:42', ignore);
await app.close();

if (isMainThread) {
  const [ofWorker] = (await once(new Worker(new URL(import.meta.url)), 'message')) as [unknown];
  console.log(JSON.stringify({ ofProcess: warnings, ofWorker }));
} else parentPort?.postMessage(warnings);
