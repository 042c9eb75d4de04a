import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createClient, type Client } from 'graphql-ws';
import { WebSocket } from 'ws';
import { deferred, eventually } from '../../../support/eventually.js';
import { ChildApplication, START_LIMIT_MS } from '../support/child-application.js';

const SECRET = 's3cret';

interface GraphqlError {
  readonly message: string;
  readonly extensions?: Record<string, unknown>;
}

const DRIVERS = [
  ['Apollo on Express', 'apollo'],
  ['Mercurius on Fastify', 'mercurius'],
] as const;

describe.each(DRIVERS)('GraphQL with %s', (_name, driver) => {
  let app: ChildApplication;

  async function ask(query: string): Promise<{ readonly text: string; error?: GraphqlError }> {
    const response = await fetch(`${app.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    });
    const text = await response.text();
    const { errors } = JSON.parse(text) as { readonly errors?: readonly GraphqlError[] };
    return { text, error: errors?.[0] };
  }

  beforeAll(async () => {
    app = await ChildApplication.start(new URL('./application.ts', import.meta.url), [driver]);
  }, START_LIMIT_MS);
  afterAll(() => app.close());

  it.each([
    ['a handler', `mutation { pay(id: "${SECRET}") }`],
    ['a service', `mutation { service(id: "${SECRET}") }`],
    ['the resolver of a field', `{ order(id: "${SECRET}") { total } }`],
  ])('says that %s was refused and when to ask again, and no key', async (_what, query) => {
    expect((await ask(query)).error).toBeUndefined();
    await app.ask('hold', `order:${SECRET}`);
    const { text, error } = await ask(query);
    await app.ask('release', `order:${SECRET}`);
    expect(error).toMatchObject({
      message: 'Somebody else is working on this right now. Try again later.',
      extensions: { code: 'LOCK_NOT_ACQUIRED', status: 409, help: 'ask again' },
    });
    const retryAfterMs = Number(error?.extensions?.retryAfterMs);
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(retryAfterMs).toBeLessThanOrEqual(20_000);
    expect(text).not.toContain(SECRET);
  });

  it('takes the lock after the pipes', async () => {
    const { text } = await ask('mutation { keys(id: "07", raw: "07") }');
    expect(JSON.parse(text)).toEqual({ data: { keys: ['order:7', 'raw:07'] } });
  });

  const expectOutage = (error: GraphqlError | undefined): void => {
    expect(error).toMatchObject({
      message: 'The lock store is not available. Try again later.',
      extensions: { code: 'LOCK_STORE_UNAVAILABLE', status: 503, retryAfterMs: 1_000 },
    });
  };

  const expectLoss = (error: GraphqlError | undefined): void => {
    expect(error).toMatchObject({
      message: expect.stringMatching(/^The lock was lost while the work ran/),
      extensions: { code: 'LOCK_LOST', status: 409, help: 'ask again' },
    });
  };

  it('says that the store is out, and that the lock was lost, and no key', async () => {
    const out = await app.duringOutage(() => ask(`mutation { pay(id: "${SECRET}") }`));
    expectOutage(out.error);
    const lost = await app.losing(`order:${SECRET}`, () =>
      ask(`mutation { work(id: "${SECRET}") }`),
    );
    expectLoss(lost.error);
    expect(out.text + lost.text).not.toContain(SECRET);
  });

  it('says that a newer call has replaced the call', async () => {
    const { error, text } = await app.replacing(`order:${SECRET}`, () =>
      ask(`mutation { work(id: "${SECRET}") }`),
    );
    expect(error).toMatchObject({
      message: 'A newer request has taken the place of this one.',
      extensions: { code: 'LOCK_REPLACED', status: 409 },
    });
    expect(text).not.toContain(SECRET);
  });

  it('says of an outage that a guard meets when to ask again, and no address', async () => {
    const { text, error } = await ask('mutation { guarded }');
    expect(error).toMatchObject({
      message: 'The lock store is not available. Try again later.',
      extensions: { code: 'LOCK_STORE_UNAVAILABLE', status: 503, retryAfterMs: 1_000 },
    });
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain('10.0.0.7');
  });

  it('says nothing of the keys of a fault of the application, and logs them', async () => {
    const { text, error } = await ask(`mutation { mistaken(id: "${SECRET}") }`);
    expect(error?.extensions).toMatchObject({ code: 'LOCK_REENTRANCY', status: 500 });
    expect(text).not.toContain(SECRET);
    // What it prints comes another way than its answer.
    await eventually(() => {
      expect(app.log).toContain(
        `"order:${SECRET}", "other" is requested inside a section that holds only`,
      );
    });
  });

  describe('a subscription', () => {
    let client: Client;

    const subscribe = (id: string): { first: Promise<unknown>; leave: () => void } => {
      const first = deferred<unknown>();
      const leave = client.subscribe(
        { query: `subscription { feed(id: "${id}") }` },
        { next: first.resolve, error: first.reject, complete: () => undefined },
      );
      return { first: first.promise, leave };
    };
    const notes = async (id: string): Promise<readonly string[]> =>
      ((await app.ask('notes')) as readonly string[]).filter((note) => note.endsWith(` ${id}`));
    const isFree = async (id: string): Promise<boolean> =>
      (await app.ask('is-held', `feed:${id}`)) === false;

    beforeEach(() => {
      const url = `${app.url.replace('http', 'ws')}/graphql`;
      client = createClient({ url, webSocketImpl: WebSocket, retryAttempts: 0 });
    });
    afterEach(() => client.dispose());

    it.each([
      ['unsubscribes', '1', (leave: () => void) => leave()],
      ['has its connection cut', '2', () => client.terminate()],
    ])('ends, and its lock with it, when its client %s', async (_how, id, end) => {
      const { first, leave } = subscribe(id);
      expect(await first).toEqual({ data: { feed: 1 } });
      expect(await isFree(id)).toBe(false);
      end(leave);
      await eventually(() => isFree(id));
      expect(await notes(id)).toEqual([`asked ${id}`, `began ${id}`, `left ${id}`]);
    });

    it.each([
      ['is refused', () => app.ask('hold', 'feed:5'), 'LOCK_NOT_ACQUIRED'],
      ['meets an outage', async () => app.fail(), 'LOCK_STORE_UNAVAILABLE'],
    ])('that %s is answered, and others of its connection go on', async (_what, begin, code) => {
      const other = subscribe('6');
      await other.first;
      await begin();
      const answer = deferred<unknown>();
      client.subscribe(
        { query: 'subscription { hasty(id: "5") }' },
        { next: answer.resolve, error: answer.resolve, complete: () => undefined },
      );
      const [error] = (await answer.promise) as [GraphqlError];
      app.recover();
      await app.ask('release', 'feed:5');
      expect(error.extensions).toMatchObject({
        code,
        retryAfterMs: expect.any(Number),
        help: 'ask again',
      });
      expect(await isFree('6')).toBe(false);
      other.leave();
      await eventually(() => isFree('6'));
    });

    it('ends when its lock is lost, and says so', async () => {
      const [began, ended] = [deferred<unknown>(), deferred<unknown>()];
      client.subscribe(
        { query: `subscription { hasty(id: "${SECRET}") }` },
        { next: began.resolve, error: ended.resolve, complete: () => undefined },
      );
      await began.promise;
      await app.lose(`feed:${SECRET}`);
      const errors = (await ended.promise) as [GraphqlError];
      expectLoss(errors[0]);
      expect(JSON.stringify(errors)).not.toContain(SECRET);
      expect(await notes(SECRET)).toEqual([`began ${SECRET}`, `left ${SECRET}`]);
    });

    it('leaves the line with its client', async () => {
      await app.ask('hold', 'feed:3');
      const { leave } = subscribe('3');
      await eventually(async () => (await notes('3')).length === 1);
      leave();
      // What comes on the same connection comes after that.
      expect(await subscribe('4').first).toEqual({ data: { feed: 1 } });
      await app.ask('release', 'feed:3');
      await eventually(() => isFree('3'));
      expect(await notes('3')).toEqual(['asked 3']);
    });
  });
});
