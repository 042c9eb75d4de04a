import { createRequire } from 'node:module';
import type { INestApplication, LoggerService, ModuleMetadata } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { LockModule, LockService, type LockModuleOptions } from 'nestjs-holdfast';

const manifest = createRequire(import.meta.url)('@nestjs/core/package.json') as { version: string };

/** From Nest 12 on a handler may answer with an async iterable. */
export const STREAMS_ITERABLES = Number.parseInt(manifest.version) >= 12;

/** For `describe.each`. */
export const ADAPTERS = [['Express'], ['Fastify']] as const;

export type AdapterName = (typeof ADAPTERS)[number][0];

/** What a client got. */
export interface Answer {
  readonly status: number;
  /** Parsed if it is JSON. */
  readonly body: any;
  readonly retryAfter: string | null;
  readonly headers: Headers;
}

/** An application that listens on a port of its own. */
export interface HttpApp {
  readonly app: INestApplication;
  readonly url: string;
  readonly locks: LockService;
  /** What was logged as a warning or an error. */
  readonly warnings: readonly string[];
  /** What was logged for debugging. */
  readonly debugged: readonly string[];
  get(path: string, init?: RequestInit): Promise<Answer>;
  post(path: string, body?: unknown, init?: RequestInit): Promise<Answer>;
}

interface Settings {
  readonly adapter?: AdapterName;
  /** Default: the memory store. */
  readonly options?: LockModuleOptions;
  /** Whether a shutdown closes connections whose clients keep them. Default: `true`. */
  readonly forceCloseConnections?: boolean;
  /** Runs before the application starts. */
  readonly configure?: (app: INestApplication) => void;
  /** How Nest tells dynamic modules apart. */
  readonly moduleIdGeneratorAlgorithm?: 'deep-hash' | 'reference';
}

/** The body of a refusal, whole. */
export const CONFLICT = {
  statusCode: 409,
  message: 'Somebody else is working on this right now. Try again later.',
  error: 'Conflict',
  code: 'LOCK_NOT_ACQUIRED',
};

const open = new Set<INestApplication>();

/** Starts an application of these parts and a `LockModule`. */
export async function startHttpApp(
  metadata: ModuleMetadata,
  {
    adapter = 'Express',
    options = { store: 'memory' },
    configure,
    forceCloseConnections = true,
    ...nest
  }: Settings = {},
): Promise<HttpApp> {
  const warnings: string[] = [];
  const record = (message: unknown): void => {
    warnings.push(String(message));
  };
  const debugged: string[] = [];
  const logger: LoggerService = {
    log: () => undefined,
    warn: record,
    error: record,
    debug: (message) => debugged.push(String(message)),
  };
  // Whoever still holds a lock when the test ends is not waited for.
  const lockModule = LockModule.forRoot({ shutdownTimeout: '100ms', ...options });
  const imports = [...(metadata.imports ?? []), lockModule];
  const module = await Test.createTestingModule({ ...metadata, imports }, nest)
    .setLogger(logger)
    .compile();
  const app = module.createNestApplication(
    adapter === 'Express' ? new ExpressAdapter() : new FastifyAdapter(),
    { forceCloseConnections },
  );
  open.add(app);
  configure?.(app);
  await app.listen(0, '127.0.0.1');
  const url = (await app.getUrl()).replace('[::1]', '127.0.0.1');

  const get = async (path: string, init?: RequestInit): Promise<Answer> => {
    const response = await fetch(url + path, init);
    const text = await response.text();
    return {
      status: response.status,
      body: parsed(text),
      retryAfter: response.headers.get('retry-after'),
      headers: response.headers,
    };
  };
  const post = (path: string, body: unknown = {}, init: RequestInit = {}): Promise<Answer> =>
    get(path, {
      method: 'POST',
      body: JSON.stringify(body),
      ...init,
      headers: { 'content-type': 'application/json', ...(init.headers as Record<string, string>) },
    });
  return { app, url, locks: app.get(LockService), warnings, debugged, get, post };
}

/** For `afterEach`: closes whatever `startHttpApp` has started. */
export async function closeHttpApps(): Promise<void> {
  const apps = [...open];
  open.clear();
  await Promise.all(apps.map((app) => app.close()));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
