/** A duration `ttl` is resolved to `ttlMs`; everything else keeps its name. */
type Unit = '' | 'Ms';

type Presence = 'required' | 'optional';

/** What may be given for an option, and what the library takes it for. */
export interface Check<Given, Value, U extends Unit = ''> {
  readonly unit: U;
  /** Only the compiler knows it. */
  readonly given?: Given;
  /** @throws LockConfigurationError that names the option */
  readonly resolve: (value: unknown, name: string) => Value;
}

/**
 * One option of a kind of call, with all that the library knows of it. Its name is that of its property in the schema.
 * The comment on that property is its documentation: editors show it at the options of a call, and the tables of the
 * documentation are made from it.
 */
export interface Option<Given, Value, U extends Unit, P extends Presence> {
  readonly presence: P;
  readonly unit: U;
  /** The value if none is given. */
  readonly fallback: Given | undefined;
  readonly resolve: (value: unknown, name: string) => Value;
}

/** The options of a kind of call, by name. */
export type Schema = Readonly<Record<string, Option<unknown, unknown, Unit, Presence>>>;

type GivenFor<O> = O extends Option<infer Given, unknown, Unit, Presence> ? Given : never;

type RequiredOf<S extends Schema> = {
  [Name in keyof S]: S[Name]['presence'] extends 'required' ? Name : never;
}[keyof S];

/** Made from the properties of the schema, and without renaming them: so the compiler keeps their comments. */
type Values<S extends Schema, Names extends keyof S> = { [Name in Names]: GivenFor<S[Name]> };

/**
 * The options that a caller may give. An interface of options from several schemas extends the `OptionsOf` of each.
 * From a schema that is spread into one in another file, the compiler would write no comments into the declarations.
 */
export type OptionsOf<S extends Schema> = Values<S, RequiredOf<S>> &
  Partial<Values<S, Exclude<keyof S, RequiredOf<S>>>>;

/**
 * The second base of an interface of options from one schema. With a single base, the compiler takes that for the
 * interface: it accepts a text or a number for the options. Its messages show the schema instead of the name.
 */
export type OneSchema = Record<never, never>;

/** What the library gets: checked, durations in milliseconds. */
export type Resolved<S extends Schema> = {
  readonly [Name in keyof S & string as `${Name}${S[Name]['unit']}`]: ReturnType<
    S[Name]['resolve']
  >;
};

/** An option that has to be given. */
export const required = <Given, Value, U extends Unit>(
  check: Check<Given, Value, U>,
): Option<Given, Value, U, 'required'> => ({ ...check, presence: 'required', fallback: undefined });

/** An option for which something else decides where it is not given. */
export const optional = <Given, Value, U extends Unit>(
  check: Check<Given, Value, U>,
): Option<Given, Value | undefined, U, 'optional'> => ({
  ...check,
  presence: 'optional',
  fallback: undefined,
});

/** An option that has a value of its own where none is given. `null` counts as nothing then: configurations are read from JSON. */
export const withDefault = <Given, Value, U extends Unit>(
  check: Check<Given, Value, U>,
  fallback: NoInfer<Given>,
): Option<Given, Value, U, 'optional'> => ({ ...check, presence: 'optional', fallback });

/** The schema of a call that lacks some options of another one. */
export function without<S extends Schema, Name extends keyof S & string>(
  schema: S,
  ...names: readonly Name[]
): Omit<S, Name> {
  const entries = Object.entries(schema).filter(([name]) => !names.some((each) => each === name));
  return Object.fromEntries(entries) as Omit<S, Name>;
}

/** The same options as properties of a plain object. An instance of a class may have accessors, which a spread leaves out. */
export function plain<Given extends object>(schema: Schema, given: Given): Given {
  const prototype: unknown = Object.getPrototypeOf(given);
  if (prototype === Object.prototype || prototype === null) return given;
  const values = given as Readonly<Record<string, unknown>>;
  const named = Object.keys(schema).map((name) => [name, values[name]] as const);
  const inherited = named.filter(([, value]) => value !== undefined);
  return { ...given, ...Object.fromEntries(inherited) };
}

interface Prepared {
  readonly entries: readonly {
    readonly name: string;
    /** What the library calls its value. */
    readonly target: string;
    readonly option: Schema[string];
  }[];
  /** What options are resolved to of which none is given. */
  readonly defaults: Readonly<Record<string, unknown>>;
}

/** Calls are many, and schemas few: what follows from a schema is put together once. */
const prepared = new WeakMap<Schema, Prepared>();

function prepare(schema: Schema): Prepared {
  let made = prepared.get(schema);
  if (made === undefined) {
    const entries = Object.entries(schema).map(([name, option]) => ({
      name,
      target: name + option.unit,
      option,
    }));
    const defaults = entries.map(({ name, target, option: { fallback, resolve: check } }) => [
      target,
      fallback === undefined ? undefined : check(fallback, name),
    ]);
    made = { entries, defaults: Object.fromEntries(defaults) as Prepared['defaults'] };
    prepared.set(schema, made);
  }
  return made;
}

/**
 * Checks what was given, by the schema.
 *
 * @param path what stands before the names in messages: `restartGuard.`
 * @throws LockConfigurationError for the first value that cannot be
 */
export function resolve<S extends Schema>(schema: S, options: object, path = ''): Resolved<S> {
  const { entries, defaults } = prepare(schema);
  const resolved = { ...defaults };
  for (const { name, target, option } of entries) {
    const { presence, fallback, resolve: check } = option;
    const given = (options as Readonly<Record<string, unknown>>)[name];
    const isGiven = given !== undefined && !(fallback !== undefined && given === null);
    if (isGiven || presence === 'required') resolved[target] = check(given, path + name);
  }
  return resolved as Resolved<S>;
}
