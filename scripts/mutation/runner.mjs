/**
 * Runs a spec in jest, as jest-circus does, and then some of its tests again and again: without a change, or with one that is switched on.
 * What it has to do is in the file of `MUTATION_TASK`; it appends what it finds to a file for this spec in the folder of `MUTATION_NOTES`, a line of
 * JSON each.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { SWITCH } from './changes.mjs';

const require = createRequire(import.meta.url);
const { default: runSpec } = require('jest-circus/runner');

/** A loop that a change makes endless comes by the change more often. */
const hitLimitOf = (hits) => 1_000_000 + 100 * hits;

/** So much longer than without a change is long enough to say that a test hangs. */
const timeLimitOf = (ms) => 5_000 + 5 * ms;

const HANGS = /Exceeded timeout of|Hit count limit reached/;

export default function runner(globalConfig, config, environment, runtime, testPath) {
  const task = JSON.parse(readFileSync(process.env.MUTATION_TASK, 'utf8'));
  const notes = notesOf(process.env.MUTATION_NOTES, relative(config.rootDir, testPath));
  const circus = () => runtime.requireInternalModule(require.resolve('jest-circus'));
  const session = new Session(task, notes, environment.global, circus);
  environment.handleTestEvent = (event, state) => session.on(event, state);
  return runSpec(globalConfig, config, environment, runtime, testPath, () => undefined);
}

/** The file with what is noted of a spec. */
export const notesOf = (folder, spec) => join(folder, Buffer.from(spec).toString('base64url'));

class Session {
  #task;
  #notes;
  #environment;
  #circus;
  #stopsAtRed = false;
  #switches;
  #loaded;
  #tests;
  #state;
  #red;
  #isRepeating = false;

  constructor(task, notes, global, circus) {
    this.#task = task;
    this.#notes = notes;
    this.#environment = global.process.env;
    this.#circus = circus;
    this.#switches = global.__stryker__ = {};
    if (task.reload === undefined) return;
    this.#switchOn(task.reload);
    this.#stopsAtRed = true;
  }

  async on(event, state) {
    const { name, test, hook } = event;
    if (name === 'test_start') this.#switches.currentTestId = `test ${this.#tests.indexOf(test)}`;
    if (/^test_(done|skip|todo)$/.test(name)) {
      this.#switches.currentTestId = undefined;
      if (name === 'test_done') this.#look(test);
    }
    if (/^hook_/.test(name) && /All$/.test(hook.type))
      this.#switches.currentTestId =
        name === 'hook_start' ? this.#groupOf(hook.parent, state) : undefined;
    if (this.#isRepeating) return;
    if (name === 'run_start') this.#prepare(state);
    if (name === 'run_finish') await this.#continue();
  }

  #prepare(state) {
    this.#state = state;
    this.#loaded = Object.keys(this.#switches.mutantCoverage?.static ?? {});
    this.#tests = testsOf(state.rootDescribeBlock);
    for (const test of this.#tests) test.usualMode = test.mode;
    this.#choose(this.#chosenFirst());
  }

  /** Which tests the spec runs by itself, before any is repeated. */
  #chosenFirst() {
    const { changes, reload } = this.#task;
    if (reload) return this.#limited(reload);
    if (changes) return new Set(changes.flatMap((change) => [...this.#limited(change, false)]));
    return new Set(this.#tests);
  }

  async #continue() {
    const { changes, reload } = this.#task;
    const red = this.#takeRed();
    if (reload) {
      this.#note({ id: reload.id, red: red ?? null });
      return;
    }
    this.#note({ isReady: true });
    const first = this.#takeCovered();
    this.#isRepeating = true;
    this.#circus = this.#circus();
    this.#circus.setState(this.#state);
    if (changes) await this.#tryAll(changes);
    else await this.#survey(first);
  }

  /** Which of the wanted changes each test comes by, when it runs for the first time and when it runs again, and which all do, as modules load. */
  async #survey(first) {
    const wanted = new Set(this.#task.wanted);
    const numbersOf = (ids) => [...new Set(ids.map(Number))].filter((id) => wanted.has(id));
    const isGreen = () => this.#tests.map(({ errors }) => errors.length === 0);
    const isGreenAtFirst = isGreen();
    const since = performance.now();
    await this.#run(new Set(this.#tests), { stopsAtRed: false });
    const ms = performance.now() - since;
    const again = this.#takeCovered();
    const isGreenAgain = isGreen();
    const tests = this.#tests.map((test, index) => {
      const groups = [`test ${index}`];
      for (let block = test.parent; block; block = block.parent) groups.push(this.#groupOf(block));
      const idsOf = (covered) =>
        numbersOf(groups.flatMap((group) => Object.keys(covered[group] ?? {})));
      return {
        ms: test.duration ?? 0,
        isGreen: isGreenAtFirst[index],
        first: idsOf(first),
        again: isGreenAtFirst[index] && isGreenAgain[index] ? idsOf(again) : [],
      };
    });
    const hits = {};
    for (const ids of Object.values(again))
      for (const [id, count] of Object.entries(ids))
        if (wanted.has(Number(id))) hits[id] = (hits[id] ?? 0) + count;
    this.#note({ ms, tests, hits, loaded: numbersOf(this.#loaded) });
  }

  async #tryAll(changes) {
    for (const change of changes) {
      const { id } = change;
      this.#note({ id, starts: true });
      const since = performance.now();
      this.#switchOn(change);
      await this.#run(this.#limited(change), { stopsAtRed: true });
      this.#switchOff();
      const red = this.#takeRed();
      const seconds = (performance.now() - since) / 1_000;
      if (red === undefined) {
        this.#note({ id, red: null, seconds });
        continue;
      }
      await this.#run(new Set([this.#tests[red.index]].filter(Boolean)), { stopsAtRed: true });
      if (this.#takeRed() !== undefined) {
        // What the change has done to the modules may last: another process has to tell.
        this.#note({ id, unclear: red });
        return;
      }
      this.#note({ id, red, seconds });
    }
  }

  #limited({ tests }, isLimited = true) {
    const chosen = new Set();
    for (const { index, ms } of tests) {
      const test = this.#tests[index];
      if (isLimited) test.timeout = timeLimitOf(ms);
      chosen.add(test);
    }
    return chosen;
  }

  async #run(chosen, { stopsAtRed }) {
    this.#red = undefined;
    this.#stopsAtRed = stopsAtRed;
    this.#state.unhandledErrors.length = 0;
    this.#choose(chosen);
    await this.#circus.run();
    await new Promise((done) => setImmediate(done));
  }

  #choose(chosen) {
    for (const test of this.#tests) {
      test.errors = [];
      test.unhandledRejectionErrorByPromise?.clear();
      test.mode = chosen.has(test) ? test.usualMode : 'skip';
    }
  }

  #look(test) {
    const [error] = [...test.errors, ...this.#state.unhandledErrors];
    if (error === undefined || this.#red !== undefined) return;
    this.#red = { index: this.#tests.indexOf(test), test: nameOf(test), hangs: hangs(error) };
    if (this.#stopsAtRed) for (const other of this.#tests) other.mode = 'skip';
  }

  /** What was red, and what nobody had caught by the end. */
  #takeRed() {
    const rejections = this.#state.unhandledRejectionErrorByPromise;
    const [error] = [...this.#state.unhandledErrors, ...rejections.values()];
    const red =
      this.#red ??
      (error === undefined ? undefined : { test: 'outside of the tests', hangs: hangs(error) });
    rejections.clear();
    this.#state.unhandledErrors.length = 0;
    this.#red = undefined;
    return red;
  }

  #switchOn({ id, hits = 0 }) {
    Object.assign(this.#switches, { activeMutant: id, hitCount: 0, hitLimit: hitLimitOf(hits) });
    process.env[SWITCH] = this.#environment[SWITCH] = id;
  }

  #switchOff() {
    Object.assign(this.#switches, { activeMutant: undefined, hitCount: undefined });
    delete process.env[SWITCH];
    delete this.#environment[SWITCH];
  }

  #note(found) {
    appendFileSync(this.#notes, `${JSON.stringify(found)}\n`);
  }

  #takeCovered() {
    const coverage = this.#switches.mutantCoverage;
    const covered = { ...coverage?.perTest };
    if (coverage) coverage.perTest = {};
    return covered;
  }

  /** The name of what `beforeAll` and `afterAll` of a block come by. */
  #groupOf(block) {
    const blocks = blocksOf(this.#state.rootDescribeBlock);
    return `block ${blocks.indexOf(block)}`;
  }
}

const blocksOf = (block) => [
  block,
  ...block.children.filter(({ type }) => type === 'describeBlock').flatMap(blocksOf),
];

const testsOf = (block) =>
  block.children.flatMap((child) => (child.type === 'test' ? [child] : testsOf(child)));

function nameOf(test) {
  const names = [];
  for (let block = test; block.parent; block = block.parent) names.unshift(block.name);
  return names.join(' ');
}

const hangs = (error) => {
  const [cause] = Array.isArray(error) ? error : [error];
  return HANGS.test(String(cause?.message ?? cause));
};
