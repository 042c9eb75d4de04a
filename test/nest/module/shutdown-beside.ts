/**
 * An application in a process of its own, for shutdown-beside.spec.ts. It leads, holds a lock, and waits for it. Beside it is what delays
 * the hooks of a shutdown: SIGUSR2 ends that.
 */
import { once } from 'node:events';
import { ApolloDriver } from '@nestjs/apollo';
import { Controller, Inject, Injectable, Module, Post, type OnModuleDestroy } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { GraphQLModule, Query, Resolver } from '@nestjs/graphql';
import { MercuriusDriver } from '@nestjs/mercurius';
import { Transport } from '@nestjs/microservices';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { LockError, LockModule, LockService } from 'nestjs-holdfast';

const { BESIDE = '', REDIS_URL = '' } = process.env;
const mayEnd = once(process, 'SIGUSR2');
let signalledAt = Infinity;
process.once('SIGTERM', () => (signalledAt = performance.now()));

const say = (what: string): void => {
  console.log(`${what} after ${String(Math.round(performance.now() - signalledAt))} ms`);
};

/** In the root module, whose hooks Nest calls before those of imported ones. */
@Injectable()
class SlowHook implements OnModuleDestroy {
  async onModuleDestroy(): Promise<void> {
    console.log('the hook begins');
    await mayEnd;
  }
}

@Controller()
class EndlessController {
  /** As long as it lasts, the HTTP server cannot be drained. */
  @Post('endless')
  async endless(): Promise<void> {
    console.log('a request begins');
    await mayEnd;
  }
}

@Resolver()
class HealthResolver {
  @Query(() => String)
  health(): string {
    return 'ok';
  }
}

@Injectable()
class Orders {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  async start(): Promise<void> {
    const { locks } = this;
    const lock = await locks.acquire('order:42');
    const { signal } = lock;
    signal.addEventListener('abort', () => {
      say(`the holder: ${String((signal.reason as { reason?: unknown }).reason)}`);
    });
    locks.acquire('order:42', { wait: '10m' }).catch((error: unknown) => {
      say(`the waiter: ${error instanceof LockError ? error.code : String(error)}`);
    });
    locks.lead('reports', {
      onElected: (lead) => {
        lead.signal.addEventListener('abort', () => {
          say('the leader: left');
        });
        console.log('leads');
      },
    });
  }
}

const ofGraphql = {
  apollo: () => GraphQLModule.forRoot({ driver: ApolloDriver, autoSchemaFile: true }),
  mercurius: () => GraphQLModule.forRoot({ driver: MercuriusDriver, autoSchemaFile: true }),
}[BESIDE];

@Module({
  imports: [
    LockModule.forRoot({ redis: REDIS_URL, shutdownTimeout: '500ms' }),
    ...(ofGraphql === undefined ? [] : [ofGraphql()]),
  ],
  controllers: [EndlessController],
  providers: [
    Orders,
    ...(ofGraphql === undefined ? [] : [HealthResolver]),
    ...(BESIDE === 'apollo' ? [] : [SlowHook]),
  ],
})
class AppModule {}

const options = { logger: ['error', 'fatal'] as ('error' | 'fatal')[] };
if (BESIDE === 'microservice') {
  const app = await NestFactory.createMicroservice(AppModule, {
    ...options,
    transport: Transport.TCP,
    options: { port: 0, host: '127.0.0.1' },
  });
  app.enableShutdownHooks();
  await app.listen();
  await app.get(Orders).start();
  console.log('open on nothing');
} else {
  const app =
    BESIDE === 'mercurius'
      ? await NestFactory.create(AppModule, new FastifyAdapter(), options)
      : await NestFactory.create(AppModule, options);
  app.enableShutdownHooks();
  await app.listen(0, '127.0.0.1');
  await app.get(Orders).start();
  console.log(`open on ${await app.getUrl()}`);
}
