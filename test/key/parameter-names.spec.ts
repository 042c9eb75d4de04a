import { describe, expect, it } from '@jest/globals';
import {
  declaredParameters,
  parameterSources,
  parametersOf,
} from '../../lib/key/parameter-names.js';

const symbol = Symbol('sym');
const computed = 'computed name';

/** `id` and `...rest` for a plain and a rest parameter, `?` for one without a name. */
const spelled = (parameters: ReturnType<typeof parametersOf>) =>
  parameters?.map(({ name, rest }) => `${rest ? '...' : ''}${name ?? '?'}`);

class Base {
  greet(name: string): string {
    return name;
  }
}

class Zoo extends Base {
  #secret = 1;
  plain(a: number, b: number) {
    return a + b;
  }
  async later(a: Promise<number>, b = { x: [1, ')'] }, ...more: number[]) {
    return (await a) + b.x.length + more.length;
  }
  *generate(a: number) {
    yield a;
  }
  async *stream(a: AsyncIterable<number>) {
    yield* a;
  }
  override greet(name: string, punctuation = `${name}!`) {
    return super.greet(name) + punctuation;
  }
  hidden(a: object) {
    return #secret in a ? this.#secret : 0;
  }
  destructured({ id }: { id: string }, [first]: string[], last: string) {
    return id + (first ?? '') + last;
  }
  destructuredDefault({ id } = { id: '1' }, ...[one]: string[]) {
    return id + (one ?? '');
  }
  'string-literal'(a: string) {
    return a;
  }
  12(a: string) {
    return a;
  }
  [computed](a: string) {
    return a;
  }
  [symbol](a: string) {
    return a;
  }
  get(a: string) {
    return a;
  }
  async(a: string) {
    return a;
  }
  static(a: string) {
    return a;
  }
  function(a: string) {
    return a;
  }
  none() {
    return import.meta.url;
  }
  #helper(wrong: string) {
    return wrong;
  }
  help(a: string) {
    return this.#helper(a);
  }
  open(a: string) {
    return a + String(arguments.length);
  }
  static plain(wrong: number) {
    return wrong;
  }
  get getter() {
    return (inner: string) => inner;
  }
}

const method = (name: PropertyKey): (() => unknown) =>
  (Zoo.prototype as unknown as Record<PropertyKey, () => unknown>)[name] as () => unknown;

const expectations: [PropertyKey, string[]][] = [
  ['plain', ['a', 'b']],
  ['later', ['a', 'b', '...more']],
  ['generate', ['a']],
  ['stream', ['a']],
  ['greet', ['name', 'punctuation']],
  ['hidden', ['a']],
  ['destructured', ['?', '?', 'last']],
  ['destructuredDefault', ['?', '...?']],
  ['string-literal', ['a']],
  ['12', ['a']],
  ['get', ['a']],
  ['async', ['a']],
  ['static', ['a']],
  ['function', ['a']],
  ['none', []],
  ['open', ['a', '...?']],
];

/** V8 takes the name of a method that is called `static` for the modifier, and leaves it out of the method's source. */
const fromItself = expectations.filter(([name]) => name !== 'static');

describe('parametersOf', () => {
  it.each([...fromItself, [computed, ['a']], [symbol, ['a']]] as typeof expectations)(
    'reads the method %p',
    (name, expected) => {
      expect(spelled(parametersOf(method(name)))).toEqual(expected);
    },
  );

  it('reads functions and arrow functions', () => {
    const sources = [
      function (a: number) {
        return a;
      },
      async function named(a: number) {
        return Promise.resolve(a);
      },
      function* (a: number) {
        yield a;
      },
      (a: number) => a,
      async (a: number) => Promise.resolve(a),
    ];
    expect(sources.map((source) => spelled(parametersOf(source)))).toEqual(
      sources.map(() => ['a']),
    );
    const [arrow] = [(0, eval)('a => a'), (0, eval)('async a => a')] as (() => unknown)[];
    expect(spelled(parametersOf(arrow as () => unknown))).toEqual(['a']);
  });

  it('reads arrow functions that use the super and the private names around them', () => {
    class Outer extends Base {
      #id = '1';
      arrow() {
        return (a: string) => super.greet(a + this.#id);
      }
    }
    expect(spelled(parametersOf(new Outer().arrow()))).toEqual(['a']);
  });

  it('reads a getter and a setter', () => {
    const { get, set } = Object.getOwnPropertyDescriptor(
      {
        get value() {
          return 1;
        },
        set value(next: number) {
          expect(next).toBeDefined();
        },
      },
      'value',
    ) as Required<PropertyDescriptor>;
    expect([parametersOf(get), spelled(parametersOf(set))]).toEqual([[], ['next']]);
  });

  it('takes any further arguments of a function that reads `arguments`, and of no other', () => {
    const sources = (0, eval)(`[
      function (a) { return arguments; },
      function (a, ...more) { return arguments; },
      function (a) { return myarguments + argumentsOf; },
    ]`) as (() => unknown)[];
    expect(sources.map((source) => spelled(parametersOf(source)))).toEqual([
      ['a', '...?'],
      ['a', '...more'],
      ['a'],
    ]);
  });

  it('reads sloppy scripts, with comments and odd defaults', () => {
    const sloppy = (0, eval)(
      '(function (a /* , b */, c = f({ x: 1 }, "),"), /* d */ e) { with (a) { return 010; } })',
    ) as () => unknown;
    expect(spelled(parametersOf(sloppy))).toEqual(['a', 'c', 'e']);
  });

  it('answers undefined where there is no source', () => {
    const sources = [method('plain').bind(null), new Proxy(method('plain'), {}), Math.max, Zoo];
    expect(sources.map((source) => parametersOf(source))).toEqual(sources.map(() => undefined));
  });
});

describe('declaredParameters', () => {
  it.each(expectations)('finds %p in the class', (name, expected) => {
    expect(spelled(declaredParameters(Zoo, name))).toEqual(expected);
  });

  it.each([
    ...[symbol, 'symbol', String(symbol)],
    ...[computed, 'computed', 'getter', 'helper', 'toString', 'absent'],
  ])('does not find %p', (name) => {
    expect(declaredParameters(Zoo, name)).toBeUndefined();
  });

  it('finds a method whose name is a number', () => {
    expect(spelled(declaredParameters(Zoo, 12))).toEqual(['a']);
  });

  it('does not take a method with a name in quotes for one with a symbol', () => {
    const Quoted = (0, eval)(`(class { 'Symbol(sym)'(wrong) {} })`) as typeof Zoo;
    expect(declaredParameters(Quoted, symbol)).toBeUndefined();
  });

  it('takes the last of several methods of one name, as the class does', () => {
    const Twice = (0, eval)('(class { m(a) {} m(b) {} })') as typeof Zoo;
    expect(spelled(declaredParameters(Twice, 'm'))).toEqual(['b']);
  });

  it('answers undefined without a class that can be read', () => {
    const unreadable = [undefined, new Proxy(Zoo, {}), function Old() {}, Date];
    expect(unreadable.map((owner) => declaredParameters(owner, 'plain'))).toEqual(
      unreadable.map(() => undefined),
    );
  });
});

describe('parameterSources', () => {
  const names = (wrapper: () => unknown, owner: typeof Zoo | undefined = Zoo) =>
    parameterSources(wrapper, owner, 'plain').map(spelled);

  it('is the method itself when nobody has wrapped it', () => {
    expect(names(method('plain'))).toEqual([['a', 'b']]);
  });

  it('is the method itself when its class is not known', () => {
    expect(parameterSources(method('plain'), undefined, 'plain').map(spelled)).toEqual([
      ['a', 'b'],
    ]);
  });

  it('is the wrapper and then the declaration', () => {
    expect(names((...args: unknown[]) => args)).toEqual([['...args'], ['a', 'b']]);
  });

  it('is the declaration when the wrapper cannot be read', () => {
    expect(names(new Proxy(method('plain'), {}))).toEqual([['a', 'b']]);
  });

  it('is the declaration of a method that is called static, whose own source V8 cuts short', () => {
    expect(parameterSources(method('static'), Zoo, 'static').map(spelled)).toEqual([['a']]);
  });

  it('is empty when nothing can be read', () => {
    expect(parameterSources(method('plain').bind(null), undefined, 'plain')).toEqual([]);
  });
});
