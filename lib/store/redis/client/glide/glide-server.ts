import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Runtime } from '../../../../time/runtime.js';
import { connectProblem, type ConnectError } from '../connect-problem.js';
import { CLOSED, isLoginRefusal, isReply } from '../reply-errors.js';
import { requestError } from './glide-replies.js';
import type { Address, GlideConfiguration, OwnGlideClient } from './glide-shape.js';

/** One more try to connect, after so long, and so long between all that follow. GLIDE hangs without a try. */
export const backOff = (ms: number): object => ({
  ...{ numberOfRetries: 1, factor: ms, exponentBase: 1, jitterPercent: 0 },
});

/** GLIDE's number for: the address is that of the server, whatever that says of itself. */
const STATIC = 1;

/** So long GLIDE waits between tries to connect again that are bound to fail. */
const RARELY_MS = 3_600_000;

/** A server that does not reply within this time cannot be reached. */
const REACHED_WITHIN_MS = 2_000;

const PING = '*1\r\n$4\r\nPING\r\n';

/**
 * Opens clients of GLIDE for one server, which may have several addresses: of its master and of replicas.
 *
 * A client that could not be created continues to try to connect, indefinitely. With a static address it is always created, but does not
 * tell what went wrong. So a plain socket finds out first whether the server can be reached, and a command whether it accepts the login.
 */
export class GlideServer {
  readonly #create: (configuration: GlideConfiguration) => Promise<OwnGlideClient>;
  readonly #runtime: Runtime;
  /** The address at which the master was last. */
  #at: Address | undefined;

  constructor(
    create: (configuration: GlideConfiguration) => Promise<OwnGlideClient>,
    runtime: Runtime,
  ) {
    this.#create = create;
    this.#runtime = runtime;
  }

  /** The connection of the client is the only one that it ever has: every other one has to be verified before it is used. */
  async open(configuration: GlideConfiguration): Promise<OwnGlideClient> {
    let problem: unknown;
    for (const at of configuration.addresses) {
      try {
        const client = await this.#openAt(at, configuration);
        this.#at = at;
        return client;
      } catch (error) {
        problem = error;
      }
    }
    throw problem;
  }

  openSubscriber(configuration: GlideConfiguration): Promise<OwnGlideClient> {
    return this.#connect(this.#at ?? configuration.addresses[0], configuration);
  }

  async #openAt(at: Address, configuration: GlideConfiguration): Promise<OwnGlideClient> {
    const { addresses, credentials } = configuration;
    const client = await this.#connect(at, {
      ...configuration,
      credentials: undefined,
      connectionBackoff: backOff(RARELY_MS),
    });
    try {
      await logIn(client, credentials);
      // GLIDE would connect again unnoticed. The server refuses that with this password, even if it needs none.
      await client.updateConnectionPassword(this.#runtime.uuid());
      if (addresses.length > 1) await expectMaster(client);
      return client;
    } catch (error) {
      client.close();
      throw error;
    }
  }

  async #connect(at: Address, configuration: GlideConfiguration): Promise<OwnGlideClient> {
    await reach(at, configuration.useTLS === true);
    return this.#create({
      ...{ ...configuration, nodeDiscoveryMode: STATIC, clientName: undefined },
      addresses: [at],
    });
  }
}

/** Waits for any reply. Over TLS only for the connection: GLIDE alone knows which certificates it trusts. */
async function reach({ host, port = 6379 }: Address, usesTls: boolean): Promise<void> {
  const socket = connect({ host, port });
  socket.setTimeout(REACHED_WITHIN_MS, () => {
    socket.destroy(new Error(`no answer within ${String(REACHED_WITHIN_MS)} ms`));
  });
  try {
    if (usesTls) await once(socket, 'connect');
    else expectWelcome(await exchange(socket, PING));
  } catch (error) {
    throw new Error(connectProblem(error as ConnectError), { cause: error });
  } finally {
    socket.destroy();
  }
}

async function exchange(socket: Socket, request: string): Promise<string> {
  socket.write(request);
  const reply = (await socket[Symbol.asyncIterator]().next()) as IteratorResult<Buffer, undefined>;
  if (reply.done) throw new Error(CLOSED);
  return reply.value.toString();
}

/** @throws what a server replies that ends the connection, for instance because it has too many. To PING, others reply with other codes */
function expectWelcome(reply: string): void {
  const [, refusal] = /^-((?:ERR|DENIED) .*)/.exec(reply) ?? [];
  if (refusal !== undefined) throw new Error(refusal);
}

async function logIn(
  client: OwnGlideClient,
  { username, password }: NonNullable<GlideConfiguration['credentials']> = {},
): Promise<void> {
  const user = username ? [username] : [];
  if (password) await client.customCommand(['auth', ...user, password]);
  try {
    await client.customCommand(['client', 'setname', 'holdfast']);
  } catch (error) {
    const failure = requestError(error);
    // A user may be forbidden to give a name.
    if (!isReply(failure) || isLoginRefusal(failure.message)) throw failure;
  }
}

async function expectMaster(client: OwnGlideClient): Promise<void> {
  const info = await client.customCommand(['info', 'replication']).catch(() => '');
  if (/^role:slave/m.test(String(info))) throw new Error('the server is a replica');
}
