import { Random } from '../faults/random.js';
import { drawFaults } from './profiles/draw-faults.js';
import { withLeaders } from './profiles/draw-leaders.js';
import { drawProcesses } from './profiles/draw-processes.js';
import { withCrowd } from './profiles/draw-crowd.js';
import { withPlainCase } from './profiles/draw-plain.js';
import { withTrouble } from './profiles/draw-trouble.js';
import { withJobs } from './profiles/draw-jobs.js';
import { withKnown, withOperators, withTurnsSeen } from './profiles/draw-operators.js';
import { withReplacing } from './profiles/draw-replacing.js';
import { withDetaching } from './profiles/draw-detaching.js';
import { withStaying } from './profiles/draw-staying.js';
import { featuresOf } from './profiles/features.js';
import { SIZES, type SizeName } from './profiles/size.js';
import type { ProfileName, Scenario, ServicePlan } from './scenario.js';
import type { ClockPlan } from './world/clock.js';

/** By how much the speeds of two clocks differ at the most: a little less than the `clockDrift` that the library allows for. */
const MOST_DRIFT = 0.009;

const OTHER_CLIENTS = ['node-redis', 'glide'] as const;

/** Sources of chance for what was added to worlds later: the rest of a world is as it would be without. */
const DETACHING = 1;
const LEADERS = 2;
const STAYING = 3;
const CROWDS = 4;
const TROUBLE = 5;
const PLAIN = 6;
const REPLACING = 7;
const OPERATORS = 8;
const SCHEDULE = 9;

/** The scenario of a seed; another one in each size. */
export function scenarioOf(profile: ProfileName, seed: number, size: SizeName = 'usual'): Scenario {
  const random = new Random(seed);
  // Seeds that follow each other begin alike.
  for (let index = 0; index < 3; index += 1) random.fraction();
  const [forDetaching, forLeaders] = [random.fork(DETACHING), random.fork(LEADERS)];
  const forStaying = random.fork(STAYING);
  const [forCrowds, forTrouble] = [random.fork(CROWDS), random.fork(TROUBLE)];
  const forPlain = random.fork(PLAIN);
  const forSchedule = random.fork(SCHEDULE);
  const [forReplacing, forOperators] = [random.fork(REPLACING), random.fork(OPERATORS)];
  const chances = { random, forDetaching, forLeaders, forStaying };
  const features = featuresOf(profile, chances, SIZES[size]);
  const { serverCount, replicas, skews, drifts, guardMs } = features;
  const clock = (): ClockPlan => ({
    skewMs: skews ? random.between(-2_000, 2_000) : 0,
    drift: drifts ? (random.fraction() - 0.5) * MOST_DRIFT : 0,
  });
  const servers = Array.from({ length: serverCount }, () => ({ clock: clock(), replicas }));
  const drawn = drawProcesses(random, features, clock);
  const detaching = withDetaching(drawn, forDetaching, features);
  const leading = withLeaders(detaching, forLeaders, features);
  const staying = withStaying(leading, forStaying, features);
  const crowded = withCrowd(staying, forCrowds, features);
  const known = withKnown(withReplacing(crowded, forReplacing, features), features);
  const processes = withJobs(known, forSchedule, features);
  const service: ServicePlan = {
    nodeTimeoutMs: features.nodeTimeoutMs,
    clockDrift: 0.01,
    shutdownTimeoutMs: random.pick([0, 200, 5_000]),
    ...(features.hasOtherClients && { client: random.pick(OTHER_CLIENTS) }),
    ...(features.hasDriver && { hasDriver: true as const }),
    ...(guardMs > 0 && { restartGuard: { maxTtlMs: guardMs } }),
    ...(replicas > 0 && features.acknowledges && { replicas: { ack: replicas, timeoutMs: 50 } }),
  };
  const troubled = withTrouble(drawFaults(random, features, drawn.length), forTrouble, features);
  const faults = withOperators(troubled, forOperators, features, drawn.length);
  const { network } = features;
  const drawnScenario = { profile, seed, servers, processes, service, network, faults };
  const staged = SIZES[size].hasMany ? withPlainCase(drawnScenario, forPlain) : drawnScenario;
  return withTurnsSeen(staged, forOperators);
}
