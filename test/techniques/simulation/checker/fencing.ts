import type { Grant } from '../../faults/grants.js';
import {
  isTurnOfLostLease,
  tokensAhead,
  tokensTogether,
  wrongTokens,
  type Loss,
} from '../../faults/safety.js';
import type { SimEvent } from '../history.js';
import { isOfOperator, type Scenario } from '../scenario.js';
import { stoodStillMs, type Facts } from './facts.js';
import { bringsOlderData, losesData, type DoneFault } from './losses.js';

/** Fencing tokens that do not grow, as far as docs/internals/promises.md says that they do. */
export function fencingViolations(
  scenario: Scenario,
  {
    events,
    grants,
    losses,
    done,
  }: {
    readonly events: readonly SimEvent[];
    readonly grants: readonly Grant[];
    readonly losses: readonly Loss[];
    readonly done: readonly DoneFault[];
  },
): readonly string[] {
  // "No fencing tokens."
  if (scenario.service.hasDriver === true) return [];
  const exempt = exemption(scenario, done);
  const isKnown = (grant: Grant): boolean =>
    !isTurnOfLostLease(grant, grants, losses) &&
    !isOldNews(grant, { losses, events }, scenario.service) &&
    !isUnknownTurn(grant, scenario, done);
  return [
    ...(exempt === 'all'
      ? []
      : wrongTokens(grants.filter((grant) => !exempt(grant) && isKnown(grant)))),
    ...(exempt === 'all' ? [] : tokensTogether(grants, losses, joinsOtherPhase(done))),
    ...aheadOfClocks(scenario, { done, events, grants }),
    ...nestedTokens(events),
  ];
}

/**
 * "A reader that joins after the marker was deleted may get a larger token": for as long as readers follow each other. And "a
 * reader that joins" holders of older data gets their token: a holder from before, which is put back among them, has a larger one.
 */
const joinsOtherPhase =
  (done: readonly DoneFault[]) =>
  (smaller: Grant, larger: Grant): boolean =>
    done.some(
      ({ at, fault }) =>
        (fault.kind === 'key-lost' && larger.keys.includes(fault.key) && at < larger.grantedAt) ||
        (bringsOlderData(fault) && larger.grantedAt < at && at < smaller.grantedAt),
    );

/**
 * Tokens that are further ahead of the clocks of all servers than may be. A key that was released by force has a fence that is
 * ahead. So has every key that was locked before a clock was set back, and every key that was locked together with such a key.
 */
function aheadOfClocks(
  { servers, processes }: Scenario,
  { done, events, grants }: Pick<Facts, 'done' | 'events' | 'grants'>,
): readonly string[] {
  if (done.some(({ fault }) => isOfOperator(fault))) return [];
  const isOne = servers.length === 1;
  if (!isOne && servers.some(({ clock }) => clock.drift !== 0)) return [];
  const steps = done.filter(({ fault }) => fault.kind === 'server-clock-set' && fault.byMs < 0);
  if (steps.length === 0) return tokensAhead(grants, isOne ? TURNS_MS : AHEAD_MS);
  const operations = processes.flatMap(({ callers }) => callers).flatMap((each) => each.operations);
  if (operations.some(({ keys }) => keys.length > 1)) return [];
  const lastStep = Math.max(...steps.map(({ at }) => at));
  const asked = new Set(
    events.flatMap((event) => (event.type === 'ask' && event.at <= lastStep ? event.keys : [])),
  );
  const isNew = ({ keys }: Grant): boolean => !keys.some((key) => asked.has(key));
  // "If their clocks were set back, by 1 s at the most."
  return tokensAhead(grants.filter(isNew), isOne ? TURNS_MS : AHEAD_MS + PROPOSED_MS);
}

/** "The clock of Redis in microseconds": a release adds one to the last token, and that may be the clock. */
const TURNS_MS = 0.05;

/** How far ahead of its clock a server accepts a token that is proposed. */
const PROPOSED_MS = 1_000;

/** "The clocks of several masters differ by more than 1 s", and the holder dies before its masters know the tokens of its turns. */
function isUnknownTurn(
  { client, grantedAt }: Grant,
  { servers, processes }: Scenario,
  done: readonly DoneFault[],
): boolean {
  const skews = servers.map(({ clock }) => clock.skewMs);
  if (servers.length === 1 || Math.max(...skews) - Math.min(...skews) <= PROPOSED_MS) return false;
  const ttls = processes.flatMap(({ callers }) =>
    callers.flatMap(({ operations }) => operations.map(({ ttlMs }) => ttlMs)),
  );
  return done.some(
    ({ fault, at }) =>
      'process' in fault &&
      client.split('.')[0] === `p${String(fault.process)}` &&
      at >= grantedAt &&
      at - grantedAt <= Math.max(...ttls),
  );
}

/** Whether the server may have granted it before a loss of data that came before the answer: who was granted it since has a larger token. */
function isOldNews(
  { client, keys, askedAt, grantedAt }: Grant,
  { losses, events }: Pick<Facts, 'losses' | 'events'>,
  { nodeTimeoutMs }: Scenario['service'],
): boolean {
  // A caller of its process that has left before the answer may have asked.
  const asked = events.flatMap((event) =>
    event.type === 'ask' && event.client === client && event.keys.some((key) => keys.includes(key))
      ? [event.at]
      : [],
  );
  return losses.some(({ from }) => {
    const since = askedAt <= from ? askedAt : asked.findLast((at) => at <= from);
    if (since === undefined) return false;
    // A process that stands still hears later.
    const lateMs = nodeTimeoutMs + stoodStillMs(events, client, [since, grantedAt]);
    return from < grantedAt && grantedAt - from <= lateMs;
  });
}

type Exemption = 'all' | ((grant: Grant) => boolean);

function exemption({ servers }: Scenario, done: readonly DoneFault[]): Exemption {
  const forgot = done.filter(({ fault }) => forgetsTokens(fault));
  if (forgot.length === 0) return () => false;
  const stepped = done.some(({ fault }) => fault.kind === 'server-clock-set');
  const differ = servers.some(({ clock }) => clock.skewMs !== 0 || clock.drift !== 0);
  // "Data lost and clock set back, or clocks that differ, both."
  if (stepped || (servers.length > 1 && differ)) return 'all';
  // "A shared lock that older data bring back."
  const hasOlderData = forgot.some(({ fault }) => bringsOlderData(fault));
  return (grant) =>
    (hasOlderData && grant.mode !== 'exclusive') ||
    // "A token may be ahead of their clocks, by 5 ms and the time that the request takes (counted up to 100 ms)."
    (servers.length > 1 &&
      forgot.some(({ at }) => grant.grantedAt > at && grant.askedAt < at + AHEAD_MS));
}

const AHEAD_MS = 150;

const forgetsTokens = (fault: DoneFault['fault']): boolean =>
  losesData(fault) || (fault.kind === 'foreign-value' && fault.at !== 'queue');

/** "Nested calls have the token of the lock that they run under." */
const nestedTokens = (events: readonly SimEvent[]): readonly string[] =>
  events.flatMap((event) =>
    event.type === 'nested' && event.fencingToken !== event.outerToken
      ? [
          `fencing: ${event.client}#${event.ask} runs in ${event.client}#${event.outer}, and has another token`,
        ]
      : [],
  );
