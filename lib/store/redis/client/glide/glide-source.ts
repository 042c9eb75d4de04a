import { LockConfigurationError } from '../../../../errors.js';
import { redact } from '../../../../errors/redact.js';
import type { Runtime } from '../../../../time/runtime.js';
import type { ClientLibrary, CredentialsProvider } from '../client-library.js';
import { credentialsProblem, provided } from '../provided-credentials.js';
import type { RedisSource } from '../redis-client.js';
import { GlideCluster } from './glide-cluster.js';
import {
  canSubscribe,
  configurationOf,
  createLike,
  isGlideClient,
  isGlideCluster,
  type GlideClient,
  type GlideConfiguration,
  type OwnGlideClient,
} from './glide-shape.js';
import { GlideSingle, type GlideMaker } from './glide-single.js';

/** GLIDE's numbers for the two protocols. */
const RESP2 = 1;
const RESP3 = 0;

/** A request waits no longer in GLIDE, whether its client was closed or not. */
const REQUEST_TIMEOUT_MS = 5_000;

/** GLIDE tries a request to a Cluster again where it was not sent or the server refused to begin. After this it must not do so. */
const CLUSTER_REQUEST_TIMEOUT_MS = 1_000;

/** One more try to create a client, after so long. So long GLIDE also waits between its tries to connect again. It hangs without a try. */
function backOff(ms: number): object {
  return { numberOfRetries: 1, factor: ms, exponentBase: 1, jitterPercent: 0 };
}

/**
 * A request that waits in GLIDE while the server is away goes out when GLIDE connects again, even if its client was closed. So GLIDE tries
 * once, when the connection breaks, and not again before all that waits has timed out.
 */
const ONE_TRY = { connectionBackoff: backOff(2 * REQUEST_TIMEOUT_MS) };

/** What each client of ours is given in place of what the application's client has. */
const OWN: Omit<GlideConfiguration, 'addresses'> = {
  databaseId: 0,
  requestTimeout: REQUEST_TIMEOUT_MS,
  protocol: RESP2,
  readFrom: 'primary',
  readOnly: false,
  lazyConnect: false,
  inflightRequestsLimit: 1_000_000,
  recoveryRequestsQueueSize: 0,
  connectionBackoff: backOff(100),
  ...{ pubsubSubscriptions: undefined, defaultDecoder: undefined, clientAz: undefined },
  ...{ compression: undefined, clientSideCache: undefined, clientCircuitBreaker: undefined },
};

/** Clients of valkey-glide. */
export const glideLibrary: ClientLibrary<GlideClient> = {
  isClient: isGlideClient,
  isCluster: isGlideCluster,
  source: glideSource,
};

function glideSource(
  client: GlideClient,
  runtime: Runtime,
  provide?: CredentialsProvider,
): RedisSource {
  const isCluster = isGlideCluster(client);
  const { addresses, databaseId = 0 } = checked(client);
  const all = addresses.map(({ host, port = 6379 }) => `${host}:${String(port)}`).join(', ');
  const name = isCluster ? `cluster ${all}` : all;
  if (isCluster && databaseId !== 0) {
    throw new LockConfigurationError(
      `Option "redis" names the database ${String(databaseId)} of the ${name}. A Cluster has database 0 only: leave the number out, and ` +
        'tell applications apart by "keyPrefix".',
    );
  }
  const secrets = new Map<string, string>();
  const make = async (own: object): Promise<OwnGlideClient> => {
    const configuration = checked(client);
    const { credentials } = configuration;
    if (credentials?.password) secrets.set('stated', credentials.password);
    return createLike(client, {
      ...configuration,
      ...OWN,
      ...own,
      ...(provide && { credentials: await given(provide) }),
    });
  };
  const given = async (
    ask: CredentialsProvider,
  ): Promise<NonNullable<GlideConfiguration['credentials']>> => {
    try {
      const { username, password } = await provided(ask, runtime);
      secrets.set('given', password);
      return { ...(username && { username }), password };
    } catch (error) {
      throw credentialsProblem(error);
    }
  };
  const ofCluster = isCluster
    ? { clientName: 'holdfast', requestTimeout: CLUSTER_REQUEST_TIMEOUT_MS }
    : { clientName: undefined }; // where it is refused, GLIDE does not tell why
  const createOne = async (): Promise<OwnGlideClient> => {
    // With one try, GLIDE would report every reason late and as a time-out. This client tells it soon.
    (await make(ofCluster)).close();
    return make({ ...ofCluster, ...ONE_TRY });
  };
  return {
    name,
    keyPrefix: '',
    isCluster,
    database: databaseId,
    whyNoReplicas:
      'valkey-glide may replace a connection between a write and WAIT, which then counts replicas that do not have the write',
    connect: (events) => {
      const maker: GlideMaker = {
        ...{ events, runtime },
        create: isCluster ? () => make(ofCluster) : createOne,
        createSubscriber: (callback) =>
          make({
            ...ofCluster,
            protocol: RESP3,
            pubsubSubscriptions: { channelsAndPatterns: {}, callback },
          }),
      };
      return isCluster ? new GlideCluster(maker) : new GlideSingle(maker);
    },
    redact: (text) => redact(text, [...secrets.values()]),
  };
}

/** @throws LockConfigurationError for a client that does not say where Redis is */
function checked(client: GlideClient): GlideConfiguration {
  const configuration = configurationOf(client);
  const { addresses } = configuration ?? {};
  if (!canSubscribe(client) || addresses === undefined || addresses.length === 0) {
    throw new LockConfigurationError(
      'Option "redis" is a client of valkey-glide that cannot be used: give one of @valkey/valkey-glide 2.3 or later, ' +
        'as GlideClient.createClient() or GlideClusterClient.createClient() returns it.',
    );
  }
  return { ...configuration, addresses };
}
