/**
 * `npm run demo`: three processes of a small shop (sample/demo) and one Redis server. Customers pay the same few orders
 * again and again, all at once: first without locks, then with. Every order should be paid once.
 *
 * DEMO_PAYMENTS is how many payments are tried, DEMO_PROCESSES how many processes the shop has, DEMO_APP another program of it.
 */
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { runToTheEnd, startRedis, startShop } from './demo/processes.mjs';
import { tableOf } from './demo/table.mjs';

const PROCESSES = Number(process.env.DEMO_PROCESSES ?? 3);
const PAYMENTS = Number(process.env.DEMO_PAYMENTS ?? 300);
const ORDERS = 10;
const APP =
  process.env.DEMO_APP ?? fileURLToPath(new URL('../sample/demo/dist/main.js', import.meta.url));

const PAID = '201';
const CAME_LATE = '409 ALREADY_PAID';
const SENT_AWAY = '409 LOCK_NOT_ACQUIRED';

/** `locks` is the shop's environment variable LOCKS; `promise`, what the round has to show, or else the demo fails. */
const ROUNDS = [
  {
    title: 'no locks',
    locks: 'off',
    promise: ({ doublePayments }) => doublePayments > 0,
  },
  {
    title: '@WithLock',
    locks: 'on',
    promise: ({ doublePayments }) => doublePayments === 0,
  },
  {
    title: '@WithLock, wait',
    locks: 'wait',
    promise: ({ doublePayments, answers }) => doublePayments === 0 && !answers.has(SENT_AWAY),
  },
];

async function main() {
  const fewest = PROCESSES * ORDERS; // then every process is asked to have every order paid
  if (!Number.isInteger(PAYMENTS) || !(PAYMENTS >= fewest)) {
    throw new Error(`DEMO_PAYMENTS is a whole number, at least ${fewest}.`);
  }
  const redisUrl = await startRedis();
  const results = [];
  for (const round of ROUNDS) results.push({ ...round, ...(await play(round, redisUrl)) });

  console.log(`\n${tableOf(results)}\n`);
  for (const result of results) {
    if (result.promise(result) && everyOrderIsPaid(result)) continue;
    console.error(`demo: "${result.title}" did not come out as it should.`);
    process.exitCode = 1;
  }
}

/** Starts the shop, fires all payments at once, stops the shop; says what came of the payments. */
async function play({ title, locks }, redisUrl) {
  console.log(`demo: ${title}: starting ${PROCESSES} processes of the shop`);
  const env = { REDIS_URL: redisUrl, LOCKS: locks };
  const shops = await Promise.all(Array.from({ length: PROCESSES }, () => startShop(APP, env)));
  // Without it, the latencies would be those of programs that have just started.
  await fire(shops, (turn) => `warm-up-${turn}`);
  await emptyLedger(redisUrl);

  console.log(`demo: ${title}: ${PAYMENTS} payments of ${ORDERS} orders, all at once`);
  const startedAt = performance.now();
  const payments = await fire(shops, (turn) => Math.floor(turn / PROCESSES) % ORDERS);
  const totalMs = performance.now() - startedAt;

  const paid = await readLedger(redisUrl);
  await Promise.all(shops.map((shop) => shop.stop()));
  return {
    doublePayments: paid.reduce((sum, times) => sum + times - 1, 0),
    answers: countBy(payments.map(({ answer }) => answer)),
    latenciesMs: payments.map(({ ms }) => ms),
    totalMs,
  };
}

/** All payments at once. They go to the processes in turn, and so do those of each order. */
const fire = (shops, orderOf) =>
  Promise.all(
    Array.from({ length: PAYMENTS }, (_, turn) =>
      pay(`${shops[turn % PROCESSES].url}/orders/${orderOf(turn)}/pay`),
    ),
  );

async function pay(url) {
  const sentAt = performance.now();
  const answer = await answerOf(url).catch((error) => `failed: ${error.cause ?? error}`);
  return { answer, ms: performance.now() - sentAt };
}

/** The status, and for errors their code: `409 LOCK_NOT_ACQUIRED`. */
async function answerOf(url) {
  const response = await fetch(url, { method: 'POST' });
  const { code } = await response.json();
  return code === undefined ? String(response.status) : `${response.status} ${code}`;
}

/** Whatever a round is for: nothing fails, and what customers were told is what the ledger says. */
function everyOrderIsPaid({ answers, doublePayments }) {
  const expected = [PAID, CAME_LATE, SENT_AWAY];
  return (
    [...answers.keys()].every((answer) => expected.includes(answer)) &&
    answers.get(PAID) === ORDERS + doublePayments
  );
}

const emptyLedger = (redisUrl) => withRedis(redisUrl, (redis) => redis.del('payments'));

/** How often each order was paid. */
const readLedger = (redisUrl) =>
  withRedis(redisUrl, async (redis) => (await redis.hvals('payments')).map(Number));

async function withRedis(url, work) {
  const redis = new Redis(url);
  try {
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}

function countBy(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

await runToTheEnd('demo', main);
