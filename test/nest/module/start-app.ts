import type { INestApplicationContext, LoggerService, ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';

export interface StartedApp {
  readonly app: INestApplicationContext;
  /** What was logged as a warning or an error, by anybody, while this was the app started last. */
  readonly warnings: readonly string[];
}

const open = new Set<INestApplicationContext>();

/** Starts an application of these parts; rejects as its start does. */
export async function startApp(metadata: ModuleMetadata): Promise<StartedApp> {
  const warnings: string[] = [];
  const record = (message: unknown): void => {
    warnings.push(String(message));
  };
  const logger: LoggerService = { log: () => undefined, warn: record, error: record };
  const app = await Test.createTestingModule(metadata).setLogger(logger).compile();
  await app.init();
  open.add(app);
  return { app, warnings };
}

/** For `afterEach`: closes whatever `startApp` has started. */
export async function closeApps(): Promise<void> {
  const apps = [...open];
  open.clear();
  await Promise.all(apps.map((app) => app.close()));
}
