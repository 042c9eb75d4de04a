import { LockConfigurationError } from '../../../../errors.js';
import { redact } from '../../../../errors/redact.js';
import type { Runtime } from '../../../../time/runtime.js';
import type { ClientLibrary, CredentialsProvider } from '../client-library.js';
import { credentialsProblem, provided } from '../provided-credentials.js';
import type { RedisSource } from '../redis-client.js';
import { GlideCluster } from './glide-cluster.js';
import {
  configurationOf,
  createLike,
  isGlideClient,
  isGlideCluster,
  isRecent,
  type GlideClient,
  type GlideConfiguration,
  type GlideMessage,
  type OwnGlideClient,
} from './glide-shape.js';
import { backOff, GlideServer } from './glide-server.js';
import { GlideSingle } from './glide-single.js';

/** GLIDE's numbers for the two protocols. */
const RESP2 = 1;
const RESP3 = 0;

/** A request waits no longer in GLIDE, whether its client was closed or not. */
const REQUEST_TIMEOUT_MS = 5_000;

/** GLIDE tries a request to a Cluster again where it was not sent or the server refused to begin. After this it must not do so. */
const CLUSTER_REQUEST_TIMEOUT_MS = 1_000;

const WHY_NO_REPLICAS =
  'for a Cluster, valkey-glide may replace a connection between a write and WAIT, which then counts replicas that do not have the write';

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
  const { addresses, databaseId = 0, credentials: stated } = checked(client);
  const all = addresses.map(({ host, port = 6379 }) => `${host}:${String(port)}`).join(', ');
  const name = isCluster ? `cluster ${all}` : all;
  checkDatabase(databaseId, name, isCluster);
  if (!isCluster && stated?.iamConfig !== undefined && provide === undefined) {
    throw new LockConfigurationError(
      `The client in option "redis" logs in at ${name} with IAM, and then connects again without notice, which Holdfast cannot allow. ` +
        'Give the option "credentials" as well: a function that returns the token.',
    );
  }
  const secrets = new Map<string, string>();
  const configured = async (signal: AbortSignal): Promise<GlideConfiguration> => {
    const configuration = checked(client);
    const credentials = provide ? await given(provide) : configuration.credentials;
    if (credentials?.password) secrets.set(provide ? 'given' : 'stated', credentials.password);
    signal.throwIfAborted();
    return { ...configuration, ...OWN, credentials };
  };
  const given = async (
    ask: CredentialsProvider,
  ): Promise<NonNullable<GlideConfiguration['credentials']>> => {
    try {
      const { username, password } = await provided(ask, runtime);
      return { ...(username && { username }), password };
    } catch (error) {
      throw credentialsProblem(error);
    }
  };
  return {
    name,
    keyPrefix: '',
    isCluster,
    database: databaseId,
    ...(isCluster && { whyNoReplicas: WHY_NO_REPLICAS }),
    connect: (events) => {
      const create = (configuration: GlideConfiguration): Promise<OwnGlideClient> =>
        createLike(client, configuration);
      if (isCluster) {
        const ofCluster = { clientName: 'holdfast', requestTimeout: CLUSTER_REQUEST_TIMEOUT_MS };
        return new GlideCluster({
          ...{ events, runtime },
          create: async (signal) => create({ ...(await configured(signal)), ...ofCluster }),
          createSubscriber: async (signal, callback) =>
            create({ ...(await configured(signal)), ...ofCluster, ...subscribing(callback) }),
          mend: async (own, signal) => {
            const { credentials } = await configured(signal);
            if (credentials?.password) await own.updateConnectionPassword(credentials.password);
          },
        });
      }
      const server = new GlideServer(create, runtime);
      return new GlideSingle({
        ...{ events, runtime },
        create: async (signal) => server.open(await configured(signal)),
        createSubscriber: async (signal, callback) =>
          server.openSubscriber({ ...(await configured(signal)), ...subscribing(callback) }),
      });
    },
    redact: (text) => redact(text, [...secrets.values()]),
  };
}

const subscribing = (callback: (message: GlideMessage) => void): Partial<GlideConfiguration> => ({
  protocol: RESP3,
  pubsubSubscriptions: { channelsAndPatterns: {}, callback },
});

function checkDatabase(database: number, name: string, isCluster: boolean): void {
  if (isCluster && database !== 0) {
    throw new LockConfigurationError(
      `Option "redis" names the database ${String(database)} of the ${name}. A Cluster has database 0 only: leave the number out, and ` +
        'tell applications apart by "keyPrefix".',
    );
  }
  if (!Number.isInteger(database) || database < 0) {
    throw new LockConfigurationError(
      `The client in option "redis" names the database ${String(database)} of ${name}. Databases have numbers from 0 on.`,
    );
  }
}

/** @throws LockConfigurationError for a client that does not say where Redis is */
function checked(client: GlideClient): GlideConfiguration {
  const configuration = configurationOf(client);
  const [first, ...others] = configuration?.addresses ?? [];
  if (!isRecent(client) || first === undefined) {
    throw new LockConfigurationError(
      'Option "redis" is a client of valkey-glide that cannot be used: give one of @valkey/valkey-glide 2.4 or later, ' +
        'as GlideClient.createClient() or GlideClusterClient.createClient() returns it.',
    );
  }
  return { ...configuration, addresses: [first, ...others] };
}
