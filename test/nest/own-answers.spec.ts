import { Catch, Controller, Get, UseFilters } from '@nestjs/common';
import type { ApplicationConfig, DiscoveryService } from '@nestjs/core';
import { MessagePattern } from '@nestjs/microservices';
import { describe, expect, it } from '@jest/globals';
import { LockErrorFilter } from 'nestjs-holdfast';
import { answerOurselves, enhance } from '../../lib/nest/handlers/own-answers.js';

@Catch(RangeError)
class OfOthers {
  catch(): void {}
}

/** Filters of a class and of its methods, in the order in which Nest has noted them, after an application with it has started twice. */
function filtersOf(controller: new () => object): Record<string, readonly object[]> {
  const discovery = { getProviders: () => [], getControllers: () => [{ metatype: controller }] };
  for (let starts = 0; starts < 2; starts += 1)
    answerOurselves(
      discovery as unknown as DiscoveryService,
      { addGlobalGuard: () => undefined } as unknown as ApplicationConfig,
    );
  const prototype = controller.prototype as Record<string, object>;
  const names = Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor');
  const noted = (on: object | undefined): readonly object[] =>
    (Reflect.getMetadata('__exceptionFilters__', on ?? {}) ?? []) as readonly object[];
  return {
    class: noted(controller),
    ...Object.fromEntries(names.map((name) => [name, noted(prototype[name])])),
  };
}

const OURS: unknown = expect.any(LockErrorFilter);

describe('the filter of lock errors', () => {
  it('is asked after that of a class which has procedures only', () => {
    @Controller()
    @UseFilters(OfOthers)
    class Procedures {
      @MessagePattern('pay')
      pay(): void {}
    }
    expect(filtersOf(Procedures)).toEqual({ class: [OURS, OfOthers], pay: [] });
  });

  it('is that of the procedures, and of no route, where a class has both', () => {
    @Controller()
    class Both {
      @MessagePattern('pay')
      pay(): void {}

      @Get()
      list(): void {}

      @Get('each')
      @MessagePattern('each')
      each(): void {}
    }
    expect(filtersOf(Both)).toEqual({ class: [], pay: [OURS], list: [], each: [] });
  });

  it('leaves a class with routes, procedures and a filter of its own as it is', () => {
    @Controller()
    @UseFilters(OfOthers)
    class Both {
      @MessagePattern('pay')
      pay(): void {}

      @Get()
      list(): void {}
    }
    expect(filtersOf(Both)).toEqual({ class: [OfOthers], pay: [], list: [] });
  });
});

describe('an enhancer', () => {
  it('is the first, and there once, however often it is put there', () => {
    const target = {};
    const [one, other] = [{}, {}];
    enhance(target, 'enhancers', one);
    enhance(target, 'enhancers', other);
    enhance(target, 'enhancers', one);
    expect(Reflect.getMetadata('enhancers', target)).toEqual([one, other]);
    expect(Reflect.getMetadata('enhancers', target)[0]).toBe(one);
  });
});
