/* What `@Leader` and `lead` accept and refuse at compile time. Nothing here runs; types.spec.ts holds the compiler to it. */
import { Leader, type Lead, type Leadership, type LockService } from '../../../lib/index.js';
import type { LeadEnd, LeaderInfo } from '../../../lib/leader/lead.js';

declare const locks: LockService;
declare const leader: LeaderInfo;

export class Accepted {
  @Leader('mailbox', { ttl: '10s', rotateEvery: '1h', instance: 'jobs' })
  async poll({ signal, term, name }: Lead): Promise<void> {
    while (!signal.aborted) await Promise.resolve(`${name} ${String(term satisfies number)}`);
  }

  @Leader('nothing')
  ignoresItsTerm(): void {}

  @Leader('result')
  returnsSomething(lead: Lead): number {
    lead.assertLeading();
    lead.stepDown();
    return lead.term;
  }

  @Leader('part')
  async partOfTheTerm({ signal }: Pick<Lead, 'signal'>): Promise<void> {
    signal.throwIfAborted();
  }

  @Leader('optional')
  async moreParameters(_lead: Lead, _more?: string): Promise<void> {}
}

export class Refused {
  // @ts-expect-error is not assignable to type '(lead: Lead) => unknown'
  @Leader('other')
  async otherParameter(_id: string): Promise<void> {}

  // @ts-expect-error is not assignable to type '(lead: Lead) => unknown'
  @Leader('two')
  async twoParameters(_lead: Lead, _id: string): Promise<void> {}

  // @ts-expect-error 'rotate' does not exist in type 'LeaderMethodOptions'
  @Leader('misspelt', { rotate: '1h' })
  async misspelt(): Promise<void> {}

  // @ts-expect-error 'wait' does not exist in type 'LeaderMethodOptions'
  @Leader('waits', { wait: '1s' })
  async waits(): Promise<void> {}

  // @ts-expect-error 'onElected' does not exist in type 'LeaderMethodOptions'
  @Leader('twice', { onElected: () => undefined })
  async twice(): Promise<void> {}

  // @ts-expect-error is not assignable to type
  @Leader('ttl', { ttl: 'short' })
  async notADuration(): Promise<void> {}

  // @ts-expect-error Type '"10s"' has no properties in common
  @Leader('text', '10s')
  async textForOptions(): Promise<void> {}

  // @ts-expect-error is not assignable to parameter of type 'string'
  @Leader(['a', 'b'])
  async severalNames(): Promise<void> {}

  // @ts-expect-error is not assignable to type '(lead: Lead) => unknown'
  @Leader('accessor')
  get size(): number {
    return Date.now();
  }

  // @ts-expect-error the decorator expects 3
  @Leader('property')
  property = async (): Promise<void> => {};
}

export async function accepted(): Promise<void> {
  const leadership: Leadership = locks.lead('mailbox', {
    ttl: 10_000,
    rotateEvery: '1h',
    onElected: async ({ term, signal }) => {
      await Promise.resolve([term + 1, signal satisfies AbortSignal]);
    },
    onLost: ({ term, reason, error }) => {
      return [term + 1, reason satisfies LeadEnd, error satisfies unknown];
    },
  });
  leadership.isLeader satisfies boolean;
  leadership.term satisfies number | undefined;
  await leadership.stepDown();
  await leadership.stop();
  await using stops = locks.lead('mailbox', { onElected: () => 1 });
  const info: LeaderInfo | null = await locks.getLeader(stops.name);
  info?.since satisfies Date | undefined;
  info?.term satisfies number | undefined;
}

export async function refused(): Promise<void> {
  // @ts-expect-error Property 'onElected' is missing
  locks.lead('mailbox', { ttl: '10s' });
  // @ts-expect-error Expected 2 arguments, but got 1
  locks.lead('mailbox');
  // @ts-expect-error 'limit' does not exist
  locks.lead('mailbox', { onElected: () => 1, limit: 2 });
  // @ts-expect-error is not assignable to type
  locks.lead('mailbox', { onElected: (lead: string) => lead });
  locks.lead('mailbox', {
    onElected: () => 1,
    onLost: ({ reason }) => {
      // @ts-expect-error This comparison appears to be unintentional
      return reason === 'resigned';
    },
  });
  // @ts-expect-error Cannot assign to 'isLeader' because it is a read-only property
  locks.lead('mailbox', { onElected: () => 1 }).isLeader = false;
  // @ts-expect-error is possibly 'null'
  (await locks.getLeader('mailbox')).isSelf satisfies boolean;
  // @ts-expect-error is possibly 'undefined'
  leader.term.toFixed();
}
