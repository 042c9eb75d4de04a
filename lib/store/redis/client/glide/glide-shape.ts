/** The node of a Cluster that a request is for. */
export type Route =
  | 'randomNode'
  | { readonly type: 'primarySlotKey'; readonly key: string }
  | { readonly type: 'primarySlotId'; readonly id: number }
  | { readonly type: 'routeByAddress'; readonly host: string; readonly port: number };

export interface GlideMessage {
  readonly message: unknown;
}

export interface Address {
  readonly host: string;
  readonly port?: number;
}

/** The configuration of a client, as far as it is read or replaced. */
export interface GlideConfiguration {
  readonly addresses: readonly [Address, ...Address[]];
  readonly databaseId?: number;
  readonly useTLS?: boolean;
  readonly credentials?: {
    readonly username?: string;
    readonly password?: string;
    readonly iamConfig?: object;
  };
  readonly pubsubSubscriptions?: {
    readonly channelsAndPatterns: object;
    readonly callback: (message: GlideMessage) => void;
  };
  readonly [option: string]: unknown;
}

/** A client of valkey-glide 2: what `GlideClient.createClient` and `GlideClusterClient.createClient` return, as far as it is looked at. */
export interface GlideClient {
  customCommand(args: string[], options?: object): Promise<unknown>;
  close(errorMessage?: string): void;
}

/** A client of our own. */
export interface OwnGlideClient extends GlideClient {
  subscribe(channels: Iterable<string>, timeoutMs: number): Promise<void>;
  /** What GLIDE logs in with when it connects again. */
  updateConnectionPassword(password: string): Promise<unknown>;
  /** GLIDE calls it with each message, and with each notice about subscriptions. */
  processPush?(push: object): void;
}

/** What GLIDE keeps in each client, and hides from TypeScript: a client cannot be duplicated. */
interface Configured {
  readonly config?: Partial<GlideConfiguration>;
}

interface GlideClass {
  createClient(configuration: GlideConfiguration): Promise<OwnGlideClient>;
}

const classOf = (client: object): Partial<GlideClass> =>
  client.constructor as unknown as Partial<GlideClass>;

/** By shape: nothing is imported, and the application may have any copy of the package. */
export function isGlideClient(value: object): value is GlideClient {
  const { customCommand, close } = value as Partial<GlideClient>;
  return (
    typeof customCommand === 'function' &&
    typeof close === 'function' &&
    typeof classOf(value).createClient === 'function'
  );
}

/** Only the client of a Cluster can tell functions where to run. */
export const isGlideCluster = (client: GlideClient): boolean => 'fcallWithRoute' in client;

/** Version 2.4 was the first with `nodeDiscoveryMode`. */
export const isRecent = (client: GlideClient): boolean => 'getCacheHitRate' in client;

export const configurationOf = (client: GlideClient): Partial<GlideConfiguration> | undefined =>
  (client as Configured).config;

/** Makes another client of the same class. */
export const createLike = (
  client: GlideClient,
  configuration: GlideConfiguration,
): Promise<OwnGlideClient> => (classOf(client) as GlideClass).createClient(configuration);
