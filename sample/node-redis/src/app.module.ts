import { Module, type OnApplicationShutdown } from '@nestjs/common';
import { LockModule } from 'nestjs-holdfast';
import { createClient } from 'redis';
import { OrdersController } from './orders.controller.js';

const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';

/** The client of the application. Holdfast reads its address and its password, and opens connections of its own. */
const client = await createClient({ url })
  .on('error', (error: Error) => console.error(error.message))
  .connect();

@Module({
  imports: [LockModule.forRoot({ redis: client })],
  controllers: [OrdersController],
})
export class AppModule implements OnApplicationShutdown {
  async onApplicationShutdown(): Promise<void> {
    await client.close();
  }
}
