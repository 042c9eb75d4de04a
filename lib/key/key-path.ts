/** What a request offers to a template, before pipes. */
export const REQUEST_ROOTS = ['params', 'body', 'query', 'headers', 'user'] as const;
export type RequestRoot = (typeof REQUEST_ROOTS)[number];

/** The inside of a placeholder, taken apart: `order.customer.id` is a head and two segments. */
export interface KeyPath {
  readonly head: string;
  readonly segments: readonly string[];
}

export const isRequestRoot = (head: string): head is RequestRoot =>
  (REQUEST_ROOTS as readonly string[]).includes(head);

/** What may stand before a part of the request: `<request.body.id>`. */
export const REQUEST = 'request';

/** `<body.id>` of that and of `<request.body.id>`; `undefined` of what is not read from the request. */
export function requestPathOf({ head, segments }: KeyPath): RequestPath | undefined {
  const [root = '', ...others] = head === REQUEST ? segments : [head, ...segments];
  return isRequestRoot(root) && others.length > 0 ? { head: root, segments: others } : undefined;
}

export interface RequestPath extends KeyPath {
  readonly head: RequestRoot;
}

const INDEX = /^(?:0|[1-9]\d*)$/u;
/** The name of a parameter. */
export const NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;
/** Header names have hyphens. */
const SEGMENT = /^[\p{ID_Continue}$-]+$/u;
/** These names lead out of the data and into the code. */
const FORBIDDEN_SEGMENTS: readonly string[] = ['__proto__', 'constructor', 'prototype'];

/** Whether the head is a position: `0` in `<0.id>`. */
export const isIndex = (head: string): boolean => INDEX.test(head);

/** The placeholder as its author wrote it, or the part of it up to some depth. */
export const placeholder = ({ head, segments }: KeyPath, depth = segments.length): string =>
  `<${[head, ...segments.slice(0, depth)].join('.')}>`;

/** What is wrong with a placeholder: the end of a sentence about the key. */
export type Problem = string;

/** Takes the inside of a placeholder apart, or says what is wrong with it. */
export function parseKeyPath(path: string): KeyPath | Problem {
  if (path.trim() === '')
    return 'has an empty placeholder. Name a parameter (<orderId>) or a position (<0>).';
  const [head = '', ...segments] = path.split('.');
  if (!(isIndex(head) || NAME.test(head)) || !segments.every((segment) => SEGMENT.test(segment)))
    return (
      `has the placeholder <${path}>, which is not a path. Write a name or a position and property names, with dots ` +
      'between them and no spaces, brackets or calls (<order.items.0.id>), or use a key function.'
    );
  const forbidden = segments.find((segment) => FORBIDDEN_SEGMENTS.includes(segment));
  if (forbidden !== undefined)
    return `reads "${forbidden}" in <${path}>, which is never data. Use a key function.`;
  return { head, segments };
}
