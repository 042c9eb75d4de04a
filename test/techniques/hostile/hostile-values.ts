import fc from 'fast-check';

/** Numbers as a server can send them that no script would: clients read integers of 64 bits as doubles. */
export const hostileNumber = fc.oneof(
  fc.integer({ min: -3, max: 3 }),
  fc.constantFrom(
    -0,
    NaN,
    Infinity,
    -Infinity,
    2 ** 31,
    -(2 ** 31),
    Number.MAX_SAFE_INTEGER,
    Number.MAX_SAFE_INTEGER + 1,
    -Number.MAX_SAFE_INTEGER,
    2 ** 63,
    -(2 ** 63),
    0.5,
    1e300,
  ),
  fc.integer(),
  fc.double(),
);

export const hostileText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('', '0', '-1', 'NaN', 'inf', '1e300', '0x10', 'QUEUED', 'OK', 'holdfast:', '\0'),
  hostileNumber.map(String),
  fc.string({ maxLength: 5 }).map((text) => text.repeat(5_000)),
);

const scalar = fc.oneof(
  hostileNumber,
  hostileText,
  fc.constantFrom(null, undefined, true, false),
  fc.bigInt(),
  fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes)),
);

/** What a lying, broken or other server may answer; RESP3 has more types than RESP2. */
export const hostileReply: fc.Arbitrary<unknown> = fc.oneof(
  scalar,
  fc.array(fc.oneof(scalar, fc.array(scalar, { maxLength: 4 })), { maxLength: 9 }),
  fc.dictionary(fc.string({ maxLength: 4 }), scalar, { maxKeys: 4, noNullPrototype: true }),
);

/** A good reply in which something is wrong: a part is another, missing, or there is one more. */
export function mutated(reply: unknown): fc.Arbitrary<unknown> {
  if (!Array.isArray(reply)) return scalar;
  const parts: readonly unknown[] = reply;
  return fc.oneof(
    fc
      .tuple(fc.nat(parts.length), fc.oneof(scalar, fc.array(scalar, { maxLength: 3 })))
      .map(([at, other]) => parts.with(Math.min(at, parts.length - 1), other)),
    fc.nat(parts.length).map((length) => parts.slice(0, length)),
    scalar.map((more) => [...parts, more]),
  );
}
