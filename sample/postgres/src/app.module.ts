import { Global, Inject, Module, type OnApplicationShutdown } from '@nestjs/common';
import { LockModule } from 'nestjs-holdfast';
import { Pool } from 'pg';
import { PaymentsService } from './payments.service.js';
import { CREATE_TABLE, PostgresLockDriver } from './postgres-lock.driver.js';

const pool = {
  provide: Pool,
  useFactory: async () => {
    const database = new Pool({ connectionString: process.env.DATABASE_URL });
    await database.query(CREATE_TABLE);
    return database;
  },
};

@Global()
@Module({ providers: [pool], exports: [Pool] })
class DatabaseModule implements OnApplicationShutdown {
  constructor(@Inject(Pool) private readonly database: Pool) {}

  /** Locks are released before: `LockModule` closes in `beforeApplicationShutdown`. */
  async onApplicationShutdown(): Promise<void> {
    await this.database.end();
  }
}

@Module({
  imports: [
    DatabaseModule,
    LockModule.forRootAsync({
      inject: [Pool],
      useFactory: (database: Pool) => ({ store: new PostgresLockDriver(database) }),
    }),
  ],
  providers: [PaymentsService],
})
export class AppModule {}
