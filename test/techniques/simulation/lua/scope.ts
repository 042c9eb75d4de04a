import { UnsupportedLua } from './values.js';

interface Place {
  readonly range: readonly [start: number, end: number];
  readonly loc: { readonly start: { readonly line: number } };
}

/** What has parts. */
export interface Whole {
  readonly type: string;
  readonly range: Place['range'];
}

/** The code of a call, and whether it gives one value or an array of any number. */
export interface CallCode {
  readonly code: string;
  readonly gives: 'one' | 'many';
}

/** A local variable of Lua, and what it is called in JavaScript. */
export interface Local {
  readonly name: string;
  /** A function that is never anything else: it may be called without a look at what it is. */
  readonly kind: 'variable' | 'function';
}

/** The names and the constants of one compiled text. */
export class Unit {
  readonly constants: unknown[] = [];
  /** What has been compiled, by the node of the tree. */
  readonly calls = new Map<object, CallCode>();
  readonly #text: string;
  readonly #names = new Map<unknown, string>();
  #count = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** A name that nothing else has. */
  fresh(base: string): string {
    this.#count += 1;
    return `${base}$${this.#count}`;
  }

  /** The name under which code finds a value. */
  constant(value: unknown): string {
    const known = this.#names.get(value);
    if (known !== undefined) return known;
    const name = `constant$${this.constants.length}`;
    this.constants.push(value);
    this.#names.set(value, name);
    return name;
  }

  /**
   * Parentheses around a call cut its values down to one, and the tree does not show them.
   *
   * @throws UnsupportedLua where there are any around the last part of something
   */
  checkParentheses(last: Place, { type, range }: Whole): void {
    const rest = this.#text.slice(last.range[1], range[1]);
    const end = ENDS[type] ?? /^\s*;?\s*$/;
    if (!end.test(rest)) refuse('parentheses around a call', last);
  }
}

/** What follows the last part of something. */
const ENDS: Readonly<Record<string, RegExp>> = {
  CallExpression: /^\s*\)$/,
  TableConstructorExpression: /^\s*[,;]?\s*\}$/,
};

/** What the names of Lua mean at one place of one function. */
export class Scope {
  readonly unit: Unit;
  /** Variables of JavaScript that expressions of the function need. */
  readonly temporaries: string[];
  readonly #outer: Scope | undefined;
  readonly #locals = new Map<string, Local>();

  constructor(unit: Unit, outer?: Scope, temporaries: string[] = []) {
    this.unit = unit;
    this.#outer = outer;
    this.temporaries = temporaries;
  }

  block(): Scope {
    return new Scope(this.unit, this, this.temporaries);
  }

  function(): Scope {
    return new Scope(this.unit, this);
  }

  declare(name: string, kind: Local['kind'] = 'variable'): string {
    const local = { name: this.unit.fresh(name), kind };
    this.#locals.set(name, local);
    return local.name;
  }

  find(name: string): Local | undefined {
    return this.#locals.get(name) ?? this.#outer?.find(name);
  }

  temporary(): string {
    const name = this.unit.fresh('temporary');
    this.temporaries.push(name);
    return name;
  }
}

/** @throws UnsupportedLua always */
export function refuse(what: string, node: Pick<Place, 'loc'>): never {
  throw new UnsupportedLua(`${what}, in line ${node.loc.start.line} of the script`);
}
