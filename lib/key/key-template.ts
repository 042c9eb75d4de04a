import { systemClock, type Clock } from '../time/clock.js';
import { parameterSources, type SourceFunction } from './parameter-names.js';
import {
  locate,
  placeholder,
  readerOf,
  requestPath,
  type Location,
  type Method,
  type Problem,
  type RequestPath,
  type RequestValues,
} from './placeholders.js';
import { templateParts } from './template-parts.js';

/** The method that a template belongs to. */
export interface KeyTemplateContext {
  /** How errors call the place, such as `@WithLock on OrdersService.pay`. */
  readonly where: string;
  /** The method as it was found, possibly wrapped by other decorators. */
  readonly method: SourceFunction;
  /** The class that declares it. */
  readonly owner: SourceFunction | undefined;
  readonly name: PropertyKey;
  /** Whether it is known to be called with a request. */
  readonly isHandler?: boolean;
  readonly fireTime?: FireTimeSource;
}

/** When the run of a method was scheduled. */
interface FireTimeSource {
  /** Why it has none. */
  readonly problem: string | undefined;
  /** @param nowMs by the wall clock */
  text(nowMs: number): string;
}

/** A word of the text that may be meant as a placeholder: it stands behind a separator. */
interface Literal {
  readonly word: string;
  /** With its separator, as it was written. */
  readonly text: string;
  /** Whether its separator is a colon by which nothing else is meant: it begins the key, or stands behind another one or a slash. */
  readonly isMarked: boolean;
  /** Whether a parameter of the method is called so, and no placeholder reads it. */
  readonly isParameter: boolean;
}

/** A template such as `order:<orderId>`, parsed. */
export interface KeyTemplate {
  /** The template as it was written. */
  readonly source: string;
  /** Whether a placeholder reads the arguments of the call, which handlers have only after their pipes. */
  readonly usesArguments: boolean;
  /** The placeholders that read the request. */
  readonly requestPaths: readonly RequestPath[];
  /** What to write instead, if a placeholder has a deprecated spelling: the end of a sentence about the key. */
  readonly deprecated: Problem | undefined;
  /**
   * The placeholder for a parameter of the method, or for a property of it: by name, or by position if the name could mean something
   * else.
   */
  readonly forParameter: (index: number, segments: readonly string[]) => string;
  /** Words behind a separator, outside of placeholders: as other libraries, and routes, write parameters. */
  readonly literals: readonly Literal[];
  /**
   * For when all decorators of the method have run.
   *
   * @param className of the object that has the method
   * @throws LockConfigurationError when it asks for a fire time and the method has none, or for the name of a class
   *   that a minifier has made
   */
  check(className?: string): void;
  /**
   * For a method that has turned out to be a handler.
   *
   * @throws LockConfigurationError when a placeholder may mean a parameter as well as a part of the request
   */
  checkHandler(): void;
  /**
   * The key of one call. Arguments are taken as they were passed: the default of a parameter is not seen.
   *
   * @param request the request that the method was called for, if there is one; its sender is then to blame for bad values
   * @param clock what `<fireTime>` goes by
   * @param className what `<class>` stands for
   * @throws LockKeyError when a value is missing or cannot stand in a key; LockConfigurationError as `check`
   */
  resolve(
    args: readonly unknown[],
    request: RequestValues | undefined,
    clock?: Clock,
    className?: string,
  ): string;
}

/**
 * Parses the template of a key, once, when the class is defined. Two calls whose values differ never get the same key.
 * All placeholders: docs/decorators.md#key-templates.
 *
 * A parameter with the name of a part of the request is refused in a handler. In other methods the parameter is used.
 *
 * @throws LockConfigurationError when the template cannot work: bad syntax, unknown names, values without a separator
 */
export function parseKeyTemplate(template: string, context: KeyTemplateContext): KeyTemplate {
  const { where, method, owner, name, isHandler = false, fireTime } = context;
  const { texts, insides, whats, wrong, keyOf } = templateParts(template, where);
  const words = wordsIn(texts);
  const needsSources = insides.length > 0 || words.length > 0;
  const sources = needsSources ? parameterSources(method, owner, name) : [];
  const parameters = new Set(sources.flat().map((parameter) => parameter.name));
  const mistaken = words.find(({ isMarked, word }) => isMarked && parameters.has(word));
  if (mistaken !== undefined)
    throw wrong(
      `has ":${mistaken.word}", which is plain text, so all calls share one lock. Write <${mistaken.word}>.`,
    );

  const called = `${String(name)}()`;
  const asHandler = { called, sources, isHandler: true };
  /** @throws LockConfigurationError for a problem */
  const located = (inside: string, how: Method): Location => {
    const found = locate(inside, how);
    if (typeof found === 'string') throw wrong(found);
    return found;
  };
  const locations = insides.map((inside) => located(inside, { called, sources, isHandler }));
  const scheduled = locations.find(({ from }) => from === 'fire-time')?.otherwise;
  if (scheduled !== undefined && fireTime === undefined) throw wrong(scheduled);
  const readers = locations.map((location, index) => readerOf(location, whats[index] ?? ''));

  const readNames = new Set(
    locations.flatMap(({ index = -1 }) => sources.map((source) => source[index]?.name)),
  );
  const literals = words.map((literal) => ({
    ...literal,
    isParameter: parameters.has(literal.word) && !readNames.has(literal.word),
  }));
  const readsClass = locations.some(({ from }) => from === 'class');
  const check = (className = ''): void => {
    if (readsClass && className.length < SHORTEST_CLASS_NAME)
      throw wrong(
        `asks for <class>, and the class is called "${className}", as a minifier calls it: others may have that name, too. Have the ` +
          'minifier keep the names of classes, or write a name in its place.',
      );
    const problem = scheduled === undefined ? undefined : fireTime?.problem;
    if (problem !== undefined) throw wrong(`${scheduled ?? ''} ${problem}`);
  };
  return {
    source: template,
    usesArguments: locations.some(({ from }) => from === 'argument' || from === 'rest'),
    requestPaths: locations.flatMap(({ requested }) => requested ?? []),
    deprecated: deprecation(texts, locations, asHandler),
    literals,
    forParameter(index, segments) {
      const named = sources[0]?.[index]?.name ?? String(index);
      const found = locate([named, ...segments].join('.'), asHandler);
      const isFound =
        typeof found === 'object' && found.from === 'argument' && found.index === index;
      return placeholder({ head: isFound ? named : String(index), segments });
    },
    check,
    checkHandler() {
      for (const inside of insides) located(inside, asHandler);
    },
    resolve(args, request, clock = systemClock, className) {
      check(className);
      const call = { args, request, className, fireTime: () => fireTime?.text(clock.now().wallMs) };
      return keyOf((index) => readers[index]?.(call), request !== undefined);
    },
  };
}

/** @param method whose parameters may have the name that the current spelling begins with */
function deprecation(
  texts: readonly string[],
  locations: readonly Location[],
  method: Method,
): Problem | undefined {
  const placeholders = locations.map(({ path, requested }) => {
    const written = placeholder(path);
    // `<request.user.id>` may be the only way to write it.
    return requested?.root === path.head
      ? { written, current: requestPath(requested.root, requested.inside) }
      : { written, current: written };
  });
  const short = placeholders.find(({ written, current }) => written !== current);
  if (short === undefined) return undefined;
  const template = texts.map((text, index) => text + (placeholders[index]?.current ?? '')).join('');
  const isTaken = typeof locate(short.current.slice(1, -1), method) === 'string';
  return (
    `has ${short.written}, which looks like a parameter and is read from the request. This spelling is deprecated. Write ` +
    `${JSON.stringify(template)}${isTaken ? ', and rename the parameter "request"' : ''}.`
  );
}

/** Minifiers give names of one letter, or two. */
const SHORTEST_CLASS_NAME = 3;

/** Stands for a placeholder, which is a part of the segment that it touches. No text contains it. */
const PLACEHOLDER = '\0';

/** A hyphen joins words to one segment: `send-mail` is not about a parameter `mail`. */
const WORD =
  /(?<before>.?)(?<separator>[^\p{ID_Continue}$\0-])(?<word>[\p{ID_Start}$_][\p{ID_Continue}$]*)(?=(?<after>.?))/gsu;

/** The words that are a whole segment behind a separator, and all that are marked as parameters, in the texts around the placeholders. */
function wordsIn(texts: readonly string[]): readonly Omit<Literal, 'isParameter'>[] {
  const words = Array.from(texts.join(PLACEHOLDER).matchAll(WORD), ({ index, groups = {} }) => {
    const { before = '', separator = '', word = '', after = '' } = groups;
    const isFirst = before === '' && index === 0;
    const isMarked = separator === ':' && (isFirst || before === ':' || before === '/');
    return {
      word,
      text: separator + word,
      isMarked,
      isSegment: !['-', PLACEHOLDER].includes(after),
    };
  });
  return words.filter(({ isMarked, isSegment }) => isMarked || isSegment);
}
