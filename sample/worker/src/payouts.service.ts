import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { LockService, RunOnce } from 'nestjs-holdfast';
import { Database } from './database.js';

@Injectable()
export class PayoutsService {
  constructor(
    private readonly database: Database,
    private readonly locks: LockService,
  ) {}

  /**
   * Done by one of all who ask for it; the others stand by, and the next of them takes over from one who dies. The lease is short, so
   * that a death is noticed soon, and renewed while the job runs, so that a job may take longer.
   */
  @RunOnce('job:<id>', { attempts: 10, ttl: '1s', keepDone: '10m' })
  async payOut(id: string): Promise<void> {
    const { attempt, signal } = this.locks.currentAttempt()!;
    await this.database.noteAttempt(id, attempt);
    console.log(`begun ${id} ${attempt}`);
    await sleep(150, undefined, { signal }); // a kill here: nothing has happened, the next attempt does it all
    const made = await this.database.pay(id, attempt);
    console.log(`paid ${id} ${attempt} ${made ? 'made' : 'refused'}`);
    await sleep(100, undefined, { signal }); // a kill here: the next attempt finds that it has been paid
  }
}
