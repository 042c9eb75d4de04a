/**
 * The longest specs first, by the times in test/times.json: what begins last must not be what takes longest. Those of the soak keep the
 * machine busy, and measure how late it is: of every three that begin, one is of these.
 * `npm test -- --record-times` writes them anew. With HOLDFAST_ORDER_SEED the order is random, and the same for the same seed.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import TestSequencer from '@jest/test-sequencer';
import { specsOf } from '../../scripts/test-parts.mjs';

const TIMES = fileURLToPath(new URL('../times.json', import.meta.url));
const projectRoot = fileURLToPath(new URL('../../', import.meta.url));
const { HOLDFAST_ORDER_SEED: seed, HOLDFAST_RECORD_TIMES: records } = process.env;

const BUSY = new Set(specsOf('soak'));
const nameOf = ({ path }) => relative(projectRoot, path);
const recorded = existsSync(TIMES) ? JSON.parse(readFileSync(TIMES, 'utf8')) : {};

/** A spec that nobody has timed may be a long one. */
const secondsOf = (test) => recorded[nameOf(test)] ?? Infinity;
const chanceOf = (test) =>
  createHash('sha256')
    .update(`${seed} ${nameOf(test)}`)
    .digest('hex');

export default class Sequencer extends TestSequencer {
  sort(tests) {
    if (seed !== undefined) return tests.toSorted(by(chanceOf));
    const longestFirst = tests.toSorted(by((test) => -secondsOf(test)));
    const isBusy = (test) => BUSY.has(nameOf(test));
    return spread(
      longestFirst.filter(isBusy),
      longestFirst.filter((test) => !isBusy(test)),
    );
  }

  cacheResults(tests, results) {
    super.cacheResults(tests, results);
    if (records === undefined) return;
    const times = { ...recorded };
    for (const { testFilePath: path, perfStats } of results.testResults) {
      times[nameOf({ path })] = Math.round(perfStats.runtime / 100) / 10;
    }
    const sorted = Object.entries(times).filter(([spec]) => existsSync(`${projectRoot}${spec}`));
    sorted.sort(by(([spec]) => spec));
    writeFileSync(TIMES, `${JSON.stringify(Object.fromEntries(sorted), undefined, 2)}\n`);
  }
}

/** One of the first list, two of the second, and so on. */
function spread(few, many) {
  const rest = [...many];
  return [...few.flatMap((each) => [each, ...rest.splice(0, 2)]), ...rest];
}

function by(value) {
  return (one, other) => Number(value(one) > value(other)) - Number(value(one) < value(other));
}
