import type { Grant } from '../../faults/grants.js';
import { tokensAhead, tokensTogether, wrongTokens, type Loss } from '../../faults/safety.js';
import type { SimEvent } from '../history.js';
import type { Scenario } from '../scenario.js';
import type { DoneFault } from './losses.js';

/** Fencing tokens that do not grow, as far as docs/guarantees.md says that they do. */
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
  const exempt = exemption(scenario, done);
  const lateMs = latestAnswerMs(scenario);
  const isKnown = (grant: Grant): boolean =>
    !isTurnOfLostLease(grant, grants, losses) && !isOldNews(grant, losses, lateMs);
  return [
    ...(exempt === 'all'
      ? []
      : wrongTokens(grants.filter((grant) => !exempt(grant) && isKnown(grant)))),
    ...(exempt === 'all' ? [] : tokensTogether(grants, losses, joinsWithoutMarker(done))),
    ...(clocksAgree(scenario, done) ? tokensAhead(grants, AHEAD_MS) : []),
    ...nestedTokens(events),
  ];
}

/** "A reader that joins after the marker was deleted may get a larger token": for as long as readers follow each other. */
const joinsWithoutMarker =
  (done: readonly DoneFault[]) =>
  (_smaller: Grant, larger: Grant): boolean =>
    done.some(
      ({ at, fault }) =>
        fault.kind === 'key-lost' && larger.keys.includes(fault.key) && at < larger.grantedAt,
    );

/** Whether a token can be compared with the clock of its process. A key that was released by force has a fence that is ahead. */
const clocksAgree = ({ servers, processes }: Scenario, done: readonly DoneFault[]): boolean =>
  [...servers, ...processes].every(({ clock }) => clock.skewMs === 0 && clock.drift === 0) &&
  done.every(({ fault }) => !DISTURBS_TOKENS.has(fault.kind));

const DISTURBS_TOKENS = new Set(['server-clock-set', 'process-clock-set', 'force-released']);

/**
 * Whether it is a turn under a lease that its process had before data were lost: its number is less than the us since the grant. Who
 * was granted the key since has a larger one, so the resource refuses the turn, as every holder that does not know of its loss.
 */
const isTurnOfLostLease = (
  turn: Grant,
  grants: readonly Grant[],
  losses: readonly Loss[],
): boolean =>
  grants.some(
    ({ client, keys, fencingToken, askedAt }) =>
      client === turn.client &&
      keys.some((key) => turn.keys.includes(key)) &&
      fencingToken < turn.fencingToken &&
      turn.fencingToken - fencingToken < (turn.grantedAt - askedAt) * 1_000 &&
      losses.some(({ from }) => askedAt <= from && from < turn.grantedAt),
  );

/** Whether the server may have granted it before a loss of data that came before the answer: who was granted it since has a larger token. */
const isOldNews = (
  { askedAt, grantedAt }: Grant,
  losses: readonly Loss[],
  lateMs: number,
): boolean =>
  losses.some(({ from }) => askedAt <= from && from < grantedAt && grantedAt - from <= lateMs);

/** How late a process may hear of a grant. */
const latestAnswerMs = ({ service, faults }: Scenario): number =>
  faults.reduce(
    (sum, fault) => sum + (fault.kind === 'process-stands-still' ? fault.forMs : 0),
    service.nodeTimeoutMs,
  );

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
  fault.kind === 'server-flushed' ||
  fault.kind === 'fail-over' ||
  fault.kind === 'data-restored' ||
  (fault.kind === 'foreign-value' && fault.at !== 'queue') ||
  (fault.kind === 'server-restarted' && fault.data !== 'kept');

/** Has a server know what was over. */
const bringsOlderData = (fault: DoneFault['fault']): boolean =>
  fault.kind === 'fail-over' ||
  fault.kind === 'data-restored' ||
  (fault.kind === 'server-restarted' && fault.data === 'older');

/** "Nested calls have the token of the lock that they run under." */
const nestedTokens = (events: readonly SimEvent[]): readonly string[] =>
  events.flatMap((event) =>
    event.type === 'nested' && event.fencingToken !== event.outerToken
      ? [
          `fencing: ${event.client}#${event.ask} runs in ${event.client}#${event.outer}, and has another token`,
        ]
      : [],
  );
