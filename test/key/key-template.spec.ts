import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { LockConfigurationError, LockKeyError } from '../../lib/errors.js';
import { checkKey } from '../../lib/key/check-key.js';
import { parseKeyTemplate } from '../../lib/key/key-template.js';
import { cases } from '../support/cases.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

/** Of a property. */
const RUNS = cases(500, 5_000);

class Order {
  constructor(private readonly number: string) {}
  get id(): string {
    return this.number;
  }
}

class OrdersService {
  pay(orderId: string, order: unknown, { id }: { id: string }) {
    return [orderId, order, id];
  }
  handle(body: unknown, headers: unknown) {
    return [body, headers];
  }
  many(first: string, ...ids: string[]) {
    return [first, ids];
  }
  none() {
    return 0;
  }
  one(a: string) {
    return a;
  }
}

type Name = keyof OrdersService;
type Method = (...args: never[]) => unknown;

const parse = (
  template: string,
  name: Name = 'pay',
  {
    method = OrdersService.prototype[name],
    owner = OrdersService,
  }: {
    method?: Method;
    owner?: typeof OrdersService | undefined;
  } = {},
) =>
  parseKeyTemplate(template, { where: `@WithLock on OrdersService.${name}`, method, owner, name });

const parseOwnerless = (template: string, method: Method) =>
  parseKeyTemplate(template, { where: 'here', method, owner: undefined, name: 'pay' });

const keyError = (resolve: () => string): LockKeyError => {
  try {
    resolve();
  } catch (error) {
    if (error instanceof LockKeyError) return error;
    throw error;
  }
  throw new Error('it was resolved');
};

describe('a key template', () => {
  it('reads parameters by name, position and path', () => {
    const args = ['7', { id: 8, lines: [{ sku: 'a:b' }] }, { id: '9' }];
    const key = (template: string) => parse(template).resolve(args, undefined);
    expect(key('order:<orderId>')).toBe('order:7');
    expect(key('order:<0>')).toBe('order:7');
    expect(key('order:<order.id>')).toBe('order:8');
    expect(key('order:<1.id>:<2.id>')).toBe('order:8:9');
    expect(key('<order.lines.0.sku>')).toBe('a%3Ab');
    expect(key('report')).toBe('report');
    expect(key('order:<0>:open')).toBe('order:7:open');
  });

  it('reads getters of classes and objects without a prototype', () => {
    const key = (order: unknown) => parse('<order.id>').resolve(['', order], undefined);
    expect(key(new Order('7'))).toBe('7');
    expect(key(Object.assign(Object.create(null) as object, { id: 7 }))).toBe('7');
  });

  it('reads the request', () => {
    const request = {
      params: { id: '1' },
      body: { order: { id: '2' } },
      query: { q: '3' },
      headers: { 'x-tenant-id': '4' },
      user: { id: '5' },
    };
    const key = (template: string) => parse(template).resolve([], request);
    expect(
      key(
        '<request.params.id>:<request.body.order.id>:<request.query.q>:<request.headers.X-Tenant-Id>:<user.id>',
      ),
    ).toBe('1:2:3:4:5');
    expect(key('<params.id>:<body.order.id>:<query.q>:<headers.X-Tenant-Id>')).toBe('1:2:3:4');
    expect(key('<request.user.id>')).toBe('5');
  });

  it('spells the path of a request as it is written, but for the name of a header', () => {
    const request = { body: { orderId: 1, OrderId: 2 }, headers: { 'x-user': { id: 3, Id: 4 } } };
    expect(parse('<request.body.OrderId>').resolve([], request)).toBe('2');
    expect(parse('<request.headers.X-User.Id>').resolve([], request)).toBe('4');
  });

  it('may have 1,024 characters of text around its placeholders, and no more', () => {
    const text = 'x'.repeat(1_022);
    expect(parse(text + 'yz').resolve([], undefined)).toHaveLength(1_024);
    expect(() => parse(`${text}:<0>:<1>`)).not.toThrow();
    expect(() => parse(`${text}:<0>:<1>!`)).toThrow(
      'is longer than the 1024 characters of a key. Shorten its text.',
    );
  });

  it('prefers a parameter to the part of the request that has its name', () => {
    const template = parse('<body.id>:<headers.X-Id>', 'handle');
    expect(template).toMatchObject({ usesArguments: true, requestPaths: [] });
    expect(template.resolve([{ id: 1 }, { 'X-Id': 2 }], { body: { id: 3 } })).toBe('1:2');
    const request = parseOwnerless('<request.body.id>', (request: unknown) => request);
    expect(request).toMatchObject({ usesArguments: true, requestPaths: [], deprecated: undefined });
    expect(request.resolve([{ body: { id: 1 } }], { body: { id: 2 } })).toBe('1');
  });

  it('reads a rest parameter as the list of its arguments', () => {
    expect(parse('<ids.1>:<first>', 'many').resolve(['f', 'a', 'b'], undefined)).toBe('b:f');
    expect(parse('<2>:<7>', 'many').resolve(Array.from('01234567'), undefined)).toBe('2:7');
  });

  it('tells what it reads', () => {
    const uses = (template: string) => {
      const { source, usesArguments, requestPaths } = parse(template);
      return [source, usesArguments, requestPaths];
    };
    const id = (root: string, ...request: string[]) => {
      const [head, ...segments] = [...request, root, 'id'];
      return [{ head, segments, root, inside: ['id'] }];
    };
    expect(uses('report')).toEqual(['report', false, []]);
    expect(uses('<0>')).toEqual(['<0>', true, []]);
    expect(uses('<body.id>')).toEqual(['<body.id>', false, id('body')]);
    expect(uses('<request.body.id>')).toEqual(['<request.body.id>', false, id('body', 'request')]);
    expect(uses('<orderId>:<user.id>')).toEqual(['<orderId>:<user.id>', true, id('user')]);
    expect(parse('<ids.0>', 'many').usesArguments).toBe(true);
  });
});

describe('the key of a call', () => {
  it.each<[string, unknown[], string]>([
    ['<orderId>', [], '<orderId> is undefined'],
    ['<order.id>', ['7', {}], '<order.id> is undefined, and all callers'],
    ['<order.id>', ['7'], '<order.id> is undefined, because <order> is undefined'],
    [
      '<1.customer.id>',
      ['7', { customer: null }],
      '<1.customer.id> is undefined, because <1.customer> is null',
    ],
    [
      '<order.ids.0>',
      ['7', { ids: '42' }],
      '<order.ids.0> is undefined, because <order.ids> is a string',
    ],
    ['<order>', ['7', {}], '<order> is an object'],
    ['<order.toString>', ['7', {}], '<order.toString> is a function'],
  ])('is refused for %s of %p', (template, args, problem) => {
    const error = keyError(() => parse(template).resolve(args, undefined));
    expect(error.detail).toContain(`@WithLock on OrdersService.pay: ${problem}`);
    expect(error.getStatus()).toBe(500);
  });

  it('is refused with 400 when the values came from a request', () => {
    const status = (template: string, args: unknown[], request: object) =>
      keyError(() => parse(template).resolve(args, request)).getStatus();
    expect(status('<request.params.id>', [], {})).toBe(400);
    expect(status('<request.query.id>', [], { query: { id: ['1', '2'] } })).toBe(400);
    expect(status('<orderId>', [undefined], {})).toBe(400);
    expect(status('<order.id>', ['7'], {})).toBe(400);
  });

  it.each([
    ['<request.params.id>', '<request.params> is undefined'],
    ['<request.params.order.id>', '<request.params> is undefined'],
    ['<request.body.order.id>', '<request.body.order> is undefined'],
    ['<body.order.id>', '<body.order> is undefined'],
    ['<user.id>', '<user> is undefined'],
  ])('is refused for %s with how far the request goes', (template, problem) => {
    const error = keyError(() => parse(template).resolve([], { body: {} }));
    expect(error.detail).toContain(`: ${template} is undefined, because ${problem}.`);
  });

  it('is refused, and not with 400, when it reads a request and there is none', () => {
    const error = keyError(() => parse('<request.params.id>').resolve([], undefined));
    expect(error.getStatus()).toBe(500);
    expect(error.detail).toBe(
      '@WithLock on OrdersService.pay: <request.params.id> is read from the request, but the method was called without one. ' +
        'Take it from a parameter instead, or lock where the request is handled.',
    );
  });

  it('is refused when many long values make it too long', () => {
    const template = parse('<0>:<1>:<2>:<3>:<4>', 'many');
    const long = Array.from({ length: 5 }, () => 'x'.repeat(250));
    const error = keyError(() => template.resolve(long, undefined));
    expect(error.detail).toBe(
      '@WithLock on OrdersService.many: the key has 1254 characters, more than 1024. Put fewer values into it.',
    );
    expect(error.getStatus()).toBe(500);
    expect(keyError(() => template.resolve(long, {})).getStatus()).toBe(400);
    const fits = [...long.slice(1), 'x'.repeat(20)];
    expect(template.resolve(fits, undefined)).toHaveLength(1_024);
  });

  it('hands on what a getter throws', () => {
    const order = {
      get id(): string {
        throw new RangeError('mine');
      },
    };
    expect(() => parse('<order.id>').resolve(['', order], undefined)).toThrow(RangeError);
  });
});

describe('a template that cannot work fails when the class is defined', () => {
  it.each<[string, string]>([
    ['', 'is empty'],
    ['order:<orderId', 'contains a "<" or ">" outside of a placeholder'],
    ['order:orderId>', 'contains a "<" or ">" outside of a placeholder'],
    ['order:<<orderId>>', 'contains a "<" or ">" outside of a placeholder'],
    ['{order}:<orderId>', 'contains a brace'],
    ['order\n<orderId>', 'contains a control character'],
    ['\ud800<orderId>', 'contains half of a surrogate pair'],
    ['order:<>', 'has an empty placeholder'],
    ['order:< >', 'has an empty placeholder'],
    ['<orderId >', 'is not a path'],
    ['<order.>', 'is not a path'],
    ['<.id>', 'is not a path'],
    ['<order..id>', 'is not a path'],
    ['<order[0]>', 'is not a path'],
    ['<order?.id>', 'is not a path'],
    ['<order.id()>', 'is not a path'],
    ['<01>', 'is not a path'],
    ['<-1>', 'is not a path'],
    ['<{orderId}>', 'is not a path'],
    ['<order.__proto__.id>', 'reads "__proto__"'],
    ['<order.constructor.name>', 'reads "constructor"'],
    ['<body.prototype>', 'reads "prototype"'],
    [
      '<params>',
      'has <params>, which is a part of the request. Name a property of it: <request.params.id>.',
    ],
    [
      '<request.body>',
      'has <request.body>, which is a part of the request. Name a property of it: <request.body.id>.',
    ],
    [
      '<request.user>',
      'has <request.user>, which is a part of the request. Name a property of it: <user.id>.',
    ],
    ['<3>', 'asks for <3>, but pay() takes 3 parameters, counted from 0'],
    ['<orderId><0>', 'is ambiguous: two values stand side by side'],
    ['<orderId>to<0>', 'is ambiguous: "to" between two values'],
    ['<orderId>%<0>', 'is ambiguous: "%" between two values'],
    ['<ordrId>', 'has <ordrId>, but pay() has no parameter "ordrId": did you mean <orderId>?'],
    ['<orders.id>', 'did you mean <order.id>?'],
    ['<param.id>', 'did you mean <request.params.id>?'],
    ['<request.header.x-id>', 'did you mean <request.headers.x-id>?'],
    ['<req.params.id>', 'did you mean <request.params.id>?'],
    ['<req.user.id>', 'did you mean <user.id>?'],
    ['<usr.id>', 'did you mean <user.id>?'],
    ['<request.id>', 'has no parameter "request" (it has orderId, order).'],
    ['<request>', 'has no parameter "request" (it has orderId, order).'],
    ['<tenant>', 'has no parameter "tenant" (it has orderId, order).'],
    ['<id>', 'Parameter 2 is destructured: write <2.id>.'],
  ])('%s', (template, problem) => {
    const define = () => parse(template);
    expect(define).toThrow(LockConfigurationError);
    expect(define).toThrow(`@WithLock on OrdersService.pay: the key ${JSON.stringify(template)} `);
    expect(define).toThrow(problem);
  });

  it('because it is too long, and is shown no longer than a key may be', () => {
    const wrong = `the key "${'x'.repeat(1_023)}…" is longer than the 1024 characters of a key`;
    expect(() => parse('x'.repeat(5_000))).toThrow(wrong);
  });

  it('names the other ways', () => {
    for (const template of ['<tenant>', '<9>'])
      expect(() => parse(template)).toThrow(/<0>.*<request\.params\.id>.*key function/);
    expect(() => parse('<tenant>', 'none')).toThrow('none() has no parameter "tenant".');
    expect(() => parse('<1>', 'one')).toThrow('one() takes 1 parameter, counted from 0');
  });

  it('does not suggest what is not alike', () => {
    expect(() => parse('<b>', 'one')).toThrow('(it has a)');
    expect(() => parse('<b>', 'one')).not.toThrow('did you mean');
  });

  it('suggests what differs in a third of its letters, and no more', () => {
    const suggestionFor = (head: string, method: Method) => {
      try {
        parseOwnerless(`<${head}>`, method);
      } catch (error) {
        return /did you mean (<\w+>)/.exec((error as Error).message)?.[1];
      }
      throw new Error('it was parsed');
    };
    const [tag, tags] = [(tag: string) => tag, (tags: string) => tags];
    expect(suggestionFor('tab', tag)).toBe('<tag>');
    expect(suggestionFor('ta', tag)).toBe('<tag>');
    expect(suggestionFor('ta', tags)).toBeUndefined();
  });

  it('suggests a part of the request only where a property of it is read', () => {
    expect(() => parse('<bodi.id>', 'one')).toThrow('did you mean <request.body.id>?');
    expect(() => parse('<bodi>', 'one')).toThrow('(it has a)');
  });

  it('says how paths are written', () => {
    expect(() => parse('<order[0]>')).toThrow(
      'has the placeholder <order[0]>, which is not a path. Write a name or a position and property names, with dots between them ' +
        'and no spaces, brackets or calls (<order.items.0.id>), or use a key function.',
    );
  });

  it('asks for one of the arguments of a rest parameter', () => {
    expect(() => parse('<ids>', 'many')).toThrow('Pick one (<ids.0>)');
  });
});

describe('a template that spells a part of the request as if it were a parameter', () => {
  const deprecated = (template: string) => parse(template).deprecated;

  it('is deprecated, and the template to write is named', () => {
    expect(deprecated('order:<params.id>')).toBe(
      'has <params.id>, which looks like a parameter and is read from the request. This spelling is deprecated. Write ' +
        '"order:<request.params.id>".',
    );
    expect(deprecated('a:<body.lines.0.sku>:<orderId>:<user.id>:<headers.X-Shop>:b')).toBe(
      'has <body.lines.0.sku>, which looks like a parameter and is read from the request. This spelling is ' +
        'deprecated. Write "a:<request.body.lines.0.sku>:<orderId>:<user.id>:<request.headers.X-Shop>:b".',
    );
  });

  it.each(['order', '<0>', '<order.id>', '<user.id>', '<request.user.id>', '<request.body.id>'])(
    'is not what %s is',
    (template) => {
      expect(deprecated(template)).toBeUndefined();
    },
  );

  it('is not what reads a parameter of that name', () => {
    expect(parse('<body.id>', 'handle').deprecated).toBeUndefined();
  });

  it('has to be written in another way where a parameter is called "request"', () => {
    const template = parseOwnerless('<params.id>', (request: unknown) => request);
    expect(template.deprecated).toMatch(
      /Write "<request\.params\.id>", and rename the parameter "request"\.$/,
    );
  });
});

describe('a method that another decorator has wrapped', () => {
  const wrapper = function (this: unknown, ...args: unknown[]) {
    return args;
  };

  it('is read from its class', () => {
    for (const method of [wrapper, new Proxy(OrdersService.prototype.pay, {})])
      expect(parse('<order.id>', 'pay', { method }).resolve(['', { id: 7 }], undefined)).toBe('7');
    expect(parse('<body.id>', 'handle', { method: wrapper }).requestPaths).toEqual([]);
    expect(() => parse('<ordrId>', 'pay', { method: wrapper })).toThrow('did you mean <orderId>?');
  });

  it('takes the positions that the class declares', () => {
    const method = () => undefined;
    expect(parse('<1.id>', 'pay', { method }).resolve(['', { id: 7 }], undefined)).toBe('7');
    expect(() => parse('<3>', 'pay', { method })).toThrow('takes 3 parameters');
  });

  it('is said to have each of its parameters once', () => {
    const method = (orderId: unknown) => orderId;
    expect(() => parse('<tenant>', 'pay', { method })).toThrow('(it has orderId, order).');
  });

  it('is refused where the wrapper has the name at another position', () => {
    expect(() => parse('<order>', 'pay', { method: (order: unknown) => order })).toThrow(
      '"order" may stand at another position in the wrapper',
    );
    expect(() =>
      parse('<order.0>', 'pay', { method: (_: unknown, ...order: unknown[]) => order }),
    ).toThrow('"order" may stand at another position in the wrapper');
    const shifting = (_context: unknown, ..._rest: unknown[]) => undefined;
    expect(() => parse('<orderId>', 'pay', { method: shifting })).toThrow(
      '"orderId" may stand at another position in the wrapper',
    );
    const passing = (..._args: unknown[]) => undefined;
    expect(parse('<orderId>', 'pay', { method: passing }).resolve(['7'], undefined)).toBe('7');
    expect(
      parse('<orderId>', 'pay', { method: (orderId: unknown) => orderId }).resolve(
        ['7'],
        undefined,
      ),
    ).toBe('7');
  });

  it('takes positions and request paths, but no names, when no source can be read', () => {
    const hidden = OrdersService.prototype.pay.bind(undefined as never);
    expect(parseOwnerless('<9>', hidden).resolve(Array.from('0123456789'), undefined)).toBe('9');
    expect(parseOwnerless('<request.body.id>', hidden).requestPaths).toHaveLength(1);
    expect(() => parseOwnerless('<orderId>', hidden)).toThrow('the source of pay() cannot be read');
  });

  it('takes any position of a method that reads its arguments object', () => {
    const lowered = (0, eval)('(function (id_1) { return later(this, arguments); })') as Method;
    expect(parseOwnerless('<3>', lowered).resolve(Array.from('0123'), undefined)).toBe('3');
    expect(() => parseOwnerless('<id>', lowered)).toThrow('rename parameters');
    expect(() => parseOwnerless('<id>', lowered)).not.toThrow('destructured');
  });
});

describe('a template with the time that a run was scheduled for', () => {
  const pay = OrdersService.prototype.pay;
  const fireTime = (problem?: string) => ({
    problem,
    text: (nowMs: number) => `at ${nowMs}`,
  });
  const parseScheduled = (
    template: string,
    { method = pay, problem }: { method?: Method; problem?: string } = {},
  ) => {
    const context = { where: 'here', method, owner: undefined, name: 'pay' };
    return parseKeyTemplate(template, { ...context, fireTime: fireTime(problem) });
  };

  it('takes it from the clock of the call', () => {
    const template = parseScheduled('report:<fireTime>:<0>');
    const clock = new VirtualRuntime();
    expect(template.resolve(['7'], undefined, clock)).toBe(`report:at ${clock.now().wallMs}:7`);
    expect(template).toMatchObject({ usesArguments: true, requestPaths: [] });
    expect(parseScheduled('<fireTime>')).toMatchObject({ usesArguments: false, requestPaths: [] });
  });

  it('is refused where nothing schedules the method: at once, or when that is known', () => {
    const missing = 'has <fireTime>, but pay() has no parameter "fireTime"';
    expect(() => parseOwnerless('<fireTime>', pay)).toThrow(missing);
    const template = parseScheduled('<fireTime>', { problem: 'Put @Cron on it.' });
    for (const refused of [
      () => {
        template.check();
      },
      () => template.resolve([], undefined),
    ]) {
      expect(refused).toThrow(LockConfigurationError);
      expect(refused).toThrow(missing);
      expect(refused).toThrow(/ key function\. Put @Cron on it\.$/);
    }
  });

  it('has no problem where the time is to be had, or is not asked for', () => {
    const problem = 'Put @Cron on it.';
    for (const template of [
      parseScheduled('<fireTime>'),
      parseScheduled('order:<0>', { problem }),
      parseScheduled('report', { problem }),
    ])
      expect(() => {
        template.check();
      }).not.toThrow();
  });

  it('has none of its parts', () => {
    expect(() => parseScheduled('<fireTime.day>')).toThrow('has no parameter "fireTime"');
  });

  it('prefers a parameter of the same name', () => {
    const template = parseScheduled('<fireTime>', { method: (fireTime: string) => fireTime });
    expect(template.resolve(['mine'], undefined)).toBe('mine');
  });
});

describe('the keys of one template', () => {
  const unit = fc.constantFrom(...Array.from(':-_/. %~{}<>3A2Daé💶→'), '\n', '\u2028');
  const value = fc.oneof(
    fc.string({ unit, minLength: 1, maxLength: 6 }),
    fc.string({ unit, minLength: 1, maxLength: 6 }).map((text) => text.repeat(90)),
    fc.integer({ min: -20, max: 20 }),
  );
  const text = fc.string({
    unit: fc.constantFrom(...Array.from(':-_/. %~3A2Dato→💶')),
    maxLength: 3,
  });
  const shape = fc.integer({ min: 1, max: 3 }).chain((count) =>
    fc.record({
      texts: fc.array(text, { minLength: count + 1, maxLength: count + 1 }),
      left: fc.array(value, { minLength: count, maxLength: count }),
      right: fc.array(value, { minLength: count, maxLength: count }),
    }),
  );
  const templateOf = (texts: readonly string[]) => {
    const source = texts.reduce((made, next, index) => `${made}<${String(index - 1)}>${next}`);
    try {
      return parse(source, 'many');
    } catch (error) {
      if (error instanceof LockConfigurationError && error.message.includes('is ambiguous'))
        return undefined;
      throw error;
    }
  };

  it('differ whenever the values differ, whatever stands between them', () => {
    let compared = 0;
    fc.assert(
      fc.property(shape, ({ texts, left, right }) => {
        const template = templateOf(texts);
        if (template === undefined) return;
        compared += 1;
        const same = left.every((each, index) => String(each) === String(right[index]));
        expect(template.resolve(left, undefined) === template.resolve(right, undefined)).toBe(same);
      }),
      { numRuns: RUNS },
    );
    expect(compared).toBeGreaterThan(RUNS / 5);
  });

  it('differ when the same text is cut into values at another place', () => {
    const cut = fc.record({
      separator: fc.string({
        unit: fc.constantFrom(...Array.from(':-_/ %~3Aa→💶')),
        minLength: 1,
        maxLength: 2,
      }),
      words: fc.array(fc.constantFrom('a', '3', 'A', '%', '💶', 'D'), {
        minLength: 3,
        maxLength: 5,
      }),
      left: fc.nat(),
      right: fc.nat(),
    });
    let compared = 0;
    fc.assert(
      fc.property(cut, ({ separator, words, left, right }) => {
        const template = templateOf(['', separator, '']);
        if (template === undefined) return;
        const split = (at: number) => {
          const place = 1 + (at % (words.length - 1));
          return [words.slice(0, place).join(separator), words.slice(place).join(separator)];
        };
        const [one, other] = [split(left), split(right)];
        if (one.join('\0') === other.join('\0')) return;
        compared += 1;
        expect(template.resolve(one, undefined)).not.toBe(template.resolve(other, undefined));
      }),
      { numRuns: RUNS },
    );
    expect(compared).toBeGreaterThan(RUNS / 5);
  });

  it('pass the check of whole keys and keep to their slot', () => {
    fc.assert(
      fc.property(shape, ({ texts, left }) => {
        const key = templateOf(texts)?.resolve(left, undefined);
        if (key !== undefined) expect(checkKey(key)).toBe(key);
      }),
    );
  });
});
