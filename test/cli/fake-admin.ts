import type { LockAdmin } from '../../lib/admin/lock-admin.js';
import type { InstanceInfo } from '../../lib/admin/lock-admin.types.js';
import type { Context, RunWithRedis } from '../../packages/cli/lib/command.js';
import type { GivenOptions } from '../../packages/cli/lib/options.js';
import { inkFor } from '../../packages/cli/lib/text/ink.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { FakeTerminal } from './program.js';

export const REASON = { reason: 'stuck' };
export const HEAD = 'Redis at nowhere\n';

/** What operators find. One service reports, unless it is said otherwise. */
export type FakeAdmin = Partial<Record<keyof LockAdmin, unknown>>;

export interface Settings {
  readonly options?: GivenOptions;
  readonly word?: string;
  readonly answers?: string[];
  readonly canAsk?: boolean;
  readonly isTty?: boolean;
  readonly columns?: number;
}

/** What a command has to work with, where no server answers. */
export function contextWith(admin: FakeAdmin, settings: Settings = {}) {
  const { options = {}, word = '', answers = [], canAsk = true } = settings;
  const { isTty = false, columns = Infinity } = settings;
  const window = { columns, rows: 24 };
  const terminal = Object.assign(new FakeTerminal(), { canAsk, answers, isTty, window });
  const runtime = new VirtualRuntime();
  const searches: unknown[] = [];
  const redis = {
    connected: async (work: (reached: object) => unknown) => {
      searches.push(work);
      return work({ servers: [], away: [] });
    },
  };
  const context = {
    ...{ words: [word], word, options, terminal, ink: inkFor({ env: {}, isTty: false }) },
    ...{ runtime, target: { shown: 'nowhere', keyPrefix: 'lock:', redis } },
    admin: () => ({ instances: async () => [instance()], ...admin }),
  } as unknown as Context;
  return { context, terminal, runtime, searches };
}

/** What a command prints and does where operators find this. */
export async function run(command: RunWithRedis, admin: FakeAdmin, settings: Settings = {}) {
  const { context, terminal } = contextWith(admin, settings);
  const code = await command(context);
  const { stdout, stderr, questions } = terminal;
  return { code, stdout, stderr, questions };
}

export const NOW_MS = Date.UTC(2030, 0, 1);
export const instance = (facts: Partial<InstanceInfo> = {}): InstanceInfo => ({
  ...{ id: 'one', application: 'orders', version: '1.4.2', host: 'web-3', pid: 4711 },
  ...{ startedAt: new Date(NOW_MS - 60_000), seenAt: new Date(NOW_MS - 5_000) },
  ...{ isUnresponsive: false, isListening: true, ...facts },
});
export const NAME = 'orders 1.4.2 on web-3, pid 4711';
