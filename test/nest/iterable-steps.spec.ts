import { get, type IncomingMessage } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { Readable } from 'node:stream';
import { Controller, Get, StreamableFile } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { WithLock } from 'nestjs-holdfast';
import { deferred, until } from '../support/eventually.js';
import { ADAPTERS, closeHttpApps, startHttpApp, STREAMS_ITERABLES } from './http-app.js';

let step = deferred();
let left = deferred();

class Rows implements AsyncIterableIterator<Buffer> {
  #steps = 0;

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Buffer>> {
    this.#steps += 1;
    if (this.#steps > 1) await step.promise;
    return { done: this.#steps > 2, value: Buffer.from('row') };
  }

  async return(): Promise<IteratorResult<Buffer>> {
    left.resolve();
    return { done: true, value: undefined };
  }
}

/** Gives its values as promises. */
class Promised implements AsyncIterableIterator<unknown> {
  #steps = 0;

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<unknown>> {
    this.#steps += 1;
    // Inside of an object, for `async` awaits what it returns.
    return { done: this.#steps > 1, value: Promise.resolve('value') };
  }
}

class Source {
  @WithLock('rows', { returns: 'iterable' })
  rows(): AsyncIterableIterator<Buffer> {
    return new Rows();
  }

  @WithLock('rows', { returns: 'iterable' })
  promised(): AsyncIterableIterator<unknown> {
    return new Promised();
  }
}

/** Answers with the first row, and asks neither for another one nor for the end. Nest does not see the iterable. */
function First(_target: object, _name: string, descriptor: PropertyDescriptor): void {
  const rows = descriptor.value as () => AsyncIterableIterator<Buffer>;
  const first = async function (this: unknown): Promise<string> {
    const { value } = await rows.call(this).next();
    return String(value);
  };
  for (const key of Reflect.getMetadataKeys(rows))
    Reflect.defineMetadata(key, Reflect.getMetadata(key, rows), first);
  descriptor.value = first;
}

@Controller()
class Tables {
  constructor(private readonly source: Source) {}

  @Get('handler')
  @WithLock('rows', { returns: 'iterable' })
  handler(): AsyncIterableIterator<Buffer> {
    return new Rows();
  }

  @Get('first')
  @First
  @WithLock('rows', { returns: 'iterable' })
  first(): AsyncIterableIterator<Buffer> {
    return new Rows();
  }

  @Get('service')
  service(): StreamableFile {
    return new StreamableFile(Readable.from(this.source.rows()));
  }
}

beforeEach(() => {
  step = deferred();
  left = deferred();
});
afterEach(closeHttpApps);

const HANDLERS = STREAMS_ITERABLES ? ['service', 'handler'] : ['service'];

describe.each(ADAPTERS)('an iterable that feeds an answer on %s', (adapter) => {
  it.each(HANDLERS)(
    'keeps its lock while a step works, also when its client has gone: of a %s',
    async (path) => {
      const { url, locks } = await startHttpApp(
        { controllers: [Tables], providers: [Source] },
        { adapter },
      );
      const released = new Promise((resolve) => locks.on('released', resolve));
      // Not by fetch(): it connects anew when it is aborted, and that connection keeps Fastify from closing.
      const client = get(`${url}/${path}`);
      client.on('error', () => undefined);
      const [response] = (await until(client, 'response')) as [IncomingMessage];
      await until(response, 'data');
      client.destroy();
      await left.promise;
      for (let turns = 0; turns < 5; turns += 1) await turn();
      expect((await locks.inspect('rows')).held).toBe(true);
      step.resolve();
      await released;
      expect((await locks.inspect('rows')).held).toBe(false);
    },
  );

  it('is asked to return when its response has ended and no consumer did so', async () => {
    const { url, locks } = await startHttpApp(
      { controllers: [Tables], providers: [Source] },
      { adapter },
    );
    const released = new Promise((resolve) => locks.on('released', resolve));
    const response = await fetch(`${url}/first`);
    expect(await response.text()).toBe('row');
    await left.promise;
    await released;
  });

  it('gives promises to its consumer as they are', async () => {
    const { app, locks } = await startHttpApp(
      { controllers: [Tables], providers: [Source] },
      { adapter },
    );
    const promised = app.get(Source).promised();
    const { value } = await promised.next();
    expect(value).toBeInstanceOf(Promise);
    expect(await promised.next()).toMatchObject({ done: true });
    expect((await locks.inspect('rows')).held).toBe(false);
  });
});
