/**
 * An application in a process of its own. Reads commands from its standard input, one a line, and prints what happens as lines of JSON:
 * `pay 42 60s` locks `order:42` with that TTL and works until `finish 42`.
 */
import { createInterface } from 'node:readline';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cluster, type ClusterNode } from 'ioredis';
import {
  LockModule,
  LockService,
  WithLock,
  type LockError,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { deferred, type Deferred } from '../support/eventually.js';

const [options = '{}'] = process.argv.slice(2);

/** What `LockModule` is given; `nodes` are those of a Cluster. */
function where(): LockModuleOptions {
  const { nodes, ...given } = JSON.parse(options) as LockModuleOptions & {
    readonly nodes?: ClusterNode[];
  };
  return nodes === undefined
    ? given
    : { ...given, redis: new Cluster(nodes, { lazyConnect: true }) };
}

const say = (event: string, facts: object = {}): void => {
  process.stdout.write(`${JSON.stringify({ event, at: Date.now(), ...facts })}\n`);
};

const finishing = new Map<string, Deferred<void>>();
const finish = (id: string): Deferred<void> => {
  const known = finishing.get(id) ?? deferred();
  finishing.set(id, known);
  return known;
};

@Injectable()
class OrdersService {
  @WithLock('order:<id>', { wait: '120s', ttl: '60s' })
  async pay(id: string): Promise<void> {
    say('granted', { id });
    await finish(id).promise;
  }
}

@Module({
  imports: [LockModule.forRoot(where())],
  providers: [OrdersService],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const orders = app.get(OrdersService);
app.get(LockService).on('lost', ({ reason }) => say('lost', { reason }));

const COMMANDS: Readonly<Record<string, (word: string) => unknown>> = {
  pay: (id) => {
    orders.pay(id).then(
      () => say('paid', { id }),
      (error: unknown) => {
        const { name, detail } = error as LockError;
        say('failed', { id, name, detail });
      },
    );
  },
  finish: (id) => {
    finish(id).resolve();
  },
  close: () => app.close(),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const [command = '', word = ''] = line.split(' ');
  void COMMANDS[command]?.(word);
});
say('open');
