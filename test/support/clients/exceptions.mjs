/**
 * Tests that say nothing of other clients, by spec and the beginning of their names, and why. `npm run test:clients` reports those that no
 * test has.
 */
const EXCEPTIONS = [];

/** Why a test is left out with a client; `undefined` where it is not. */
export function exceptionFor(client, spec, title) {
  const found = EXCEPTIONS.find(
    ({ clients, specs, tests }) =>
      clients.includes(client) && specs.test(spec) && (tests === undefined || tests.test(title)),
  );
  return found?.reason;
}
