import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  Injectable,
  Module,
  ParseIntPipe,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  Args,
  Field,
  GraphQLModule,
  Int,
  Mutation,
  ObjectType,
  Parent,
  Query,
  ResolveField,
  Resolver,
  Subscription,
} from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { LockService, LockStoreUnavailableError, WithLock } from 'nestjs-holdfast';
import { lockModule, notes, serve, untilLost } from '../support/serve.js';

@Injectable()
class Refusing implements CanActivate {
  canActivate(): boolean {
    const node = '10.0.0.7:6379';
    throw new LockStoreUnavailableError({
      operation: 'acquire',
      keys: ['order:s3cret'],
      nodes: [{ node, kind: 'connection', message: `connect ECONNREFUSED ${node}` }],
    });
  }
}

@Injectable()
class Noting implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    notes.push(`asked ${context.getArgByIndex<{ readonly id: string }>(1).id}`);
    return true;
  }
}

@ObjectType()
class Order {
  @Field(() => String)
  readonly id!: string;
}

const id = { type: () => String };

@Resolver(() => Order)
class OrderResolver {
  constructor(private readonly locks: LockService) {}

  @Query(() => Order)
  order(@Args('id', id) orderId: string): Order {
    return { id: orderId };
  }

  @ResolveField(() => Int)
  async total(@Parent() order: Order): Promise<number> {
    return this.locks.run(`order:${order.id}`, { wait: 0 }, () => 7);
  }

  @Mutation(() => String)
  @WithLock('order:<orderId>')
  async pay(@Args('id', id) orderId: string): Promise<string> {
    return `paid ${orderId.length.toString()}`;
  }

  @Mutation(() => [String])
  @WithLock(['order:<0>', 'raw:<request.body.raw>'])
  async keys(
    @Args('id', id, ParseIntPipe) _count: number,
    @Args('raw') _raw: string,
  ): Promise<readonly string[]> {
    return this.locks.current()?.keys ?? [];
  }

  @Mutation(() => String)
  @WithLock('order:<orderId>')
  async work(@Args('id', id) orderId: string): Promise<string> {
    await untilLost(this.locks);
    return orderId;
  }

  @Mutation(() => String)
  async service(@Args('id', id) orderId: string): Promise<string> {
    return this.locks.run(`order:${orderId}`, { wait: 0 }, () => 'done');
  }

  @Mutation(() => String)
  @UseGuards(Refusing)
  guarded(): string {
    return 'done';
  }

  @Mutation(() => String)
  async mistaken(@Args('id', id) orderId: string): Promise<string> {
    return this.locks.run(`order:${orderId}`, () =>
      this.locks.run([`order:${orderId}`, 'other'], () => 'done'),
    );
  }

  @Subscription(() => Int, { resolve: (count: number) => count })
  @WithLock('feed:<feedId>', { returns: 'iterable' })
  hasty(@Args('id', id) feedId: string): AsyncIterableIterator<number> {
    return new Feed(feedId);
  }

  @UseGuards(Noting)
  @Subscription(() => Int, { resolve: (count: number) => count })
  @WithLock('feed:<feedId>', { returns: 'iterable', ttl: '2s', wait: '20s' })
  feed(@Args('id', id) feedId: string): AsyncIterableIterator<number> {
    return new Feed(feedId);
  }
}

/** As a broker's client gives it: one event, then none, until it is left. */
class Feed implements AsyncIterableIterator<number> {
  readonly #id: string;
  #end: ((result: IteratorResult<number>) => void) | undefined;
  #steps = 0;

  constructor(feedId: string) {
    this.#id = feedId;
    notes.push(`began ${feedId}`);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<number>> {
    this.#steps += 1;
    if (this.#steps === 1) return Promise.resolve({ done: false, value: 1 });
    return new Promise((resolve) => (this.#end = resolve));
  }

  return(): Promise<IteratorResult<number>> {
    notes.push(`left ${this.#id}`);
    this.#end?.({ done: true, value: undefined });
    return Promise.resolve({ done: true, value: undefined });
  }
}

const [driver] = process.argv.slice(2);
const isApollo = driver === 'apollo';

@Module({
  imports: [
    lockModule({
      errors: { body: (_error, body) => ({ ...body, help: 'ask again' }) },
    }),
    isApollo
      ? GraphQLModule.forRoot<ApolloDriverConfig>({
          driver: ApolloDriver,
          autoSchemaFile: true,
          subscriptions: { 'graphql-ws': true },
        })
      : GraphQLModule.forRoot<MercuriusDriverConfig>({
          driver: MercuriusDriver,
          autoSchemaFile: true,
          subscription: true,
        }),
  ],
  providers: [OrderResolver],
})
class AppModule {}

const options = { logger: ['error', 'warn'] as ('error' | 'warn')[] };
const app = isApollo
  ? await NestFactory.create(AppModule, options)
  : await NestFactory.create(AppModule, new FastifyAdapter(), options);
await app.listen(0, '127.0.0.1');
serve(app, await app.getUrl());
