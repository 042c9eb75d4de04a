import type { PlantedBug } from './planted-bug.js';

/** Jobs that every process starts at the same times. */
export const JOBS: readonly PlantedBug[] = (
  [
    {
      name: 'lost-job-frees-its-key',
      file: 'lib/lease/lease-keeper.ts',
      find: '    keepMs = lease.keepMs,\n  ): void {',
      replace: '    keepMs = 0,\n  ): void {',
      explanation: 'A job that took too long, or lost its lock, frees its key before `atLeast`.',
      breaks: "- a loss, if the holder's process still runs and reaches Redis;",
    },
    {
      name: 'shutdown-frees-the-key-of-a-job',
      file: 'lib/engine/shutdown.ts',
      find: "keeper.lose(lease, 'shutdown');",
      replace: "keeper.lose(lease, 'shutdown', undefined, 0);",
      explanation: 'A shutdown frees the key of a job that still runs before `atLeast`.',
      breaks: '- a shutdown;',
    },
  ] as const
).map((bug) => ({ ...bug, profile: 'cron' }));
