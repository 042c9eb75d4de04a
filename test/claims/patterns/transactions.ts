/** The recipes of docs/recipes.md with transactions. Each is on the page as it is here. */
import { ConflictException, Injectable } from '@nestjs/common';
import { LockService, lockKey } from 'nestjs-holdfast';
import { Column, DataSource, Entity, PrimaryColumn } from 'typeorm';
import type { PrismaClient } from './prisma-client.js';

@Entity()
export class Account {
  @PrimaryColumn('text')
  id!: string;

  @Column('integer')
  balance!: number;
}

// recipe
@Injectable()
export class Transfers {
  constructor(
    private readonly locks: LockService,
    private readonly dataSource: DataSource,
  ) {}

  async transfer(from: string, to: string, amount: number): Promise<void> {
    const keys = [lockKey`account:${from}`, lockKey`account:${to}`];
    await this.locks.run(keys, { wait: '5s' }, ({ signal }) =>
      this.dataSource.transaction(async (manager) => {
        const payer = await manager.findOneByOrFail(Account, { id: from });
        if (payer.balance < amount) throw new ConflictException('Not enough money.');
        await manager.update(Account, { id: from }, { balance: payer.balance - amount });
        await manager.increment(Account, { id: to }, 'balance', amount);
        signal.throwIfAborted(); // rolls back if the lock was lost
      }),
    );
  }
}
// end

// recipe
export const transferWith =
  (locks: LockService, prisma: PrismaClient) =>
  async (from: string, to: string, amount: number): Promise<void> => {
    const keys = [lockKey`account:${from}`, lockKey`account:${to}`];
    await locks.run(keys, { wait: '5s' }, ({ signal }) =>
      prisma.$transaction(async (tx) => {
        const payer = await tx.account.findUniqueOrThrow({ where: { id: from } });
        if (payer.balance < amount) throw new ConflictException('Not enough money.');
        const balance = payer.balance - amount;
        await tx.account.update({ where: { id: from }, data: { balance } });
        await tx.account.update({ where: { id: to }, data: { balance: { increment: amount } } });
        signal.throwIfAborted(); // rolls back if the lock was lost
      }),
    );
  };
// end
