/** Shows changes to judges, specs and simulated worlds, one after the other until one notices or the time for the change is over. */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hashOf } from './changes.mjs';

/** How long a change is shown to judges that do not notice it. */
const SECONDS_PER_CHANGE = 30;

/** What it takes to start a spec, where that is done for one change. */
const START_S = 4;

/** Of the changes that wait for the same judge, so many are shown to it at a time. */
const BATCH = 40;

export const WORLDS = 'simulated worlds';
/** They come after the quick tests of the folder. */
const WORLDS_RANK = 1;

/** The tests of its own folder come before others that take a quarter of their time. */
const OWN_WEIGHT = 0.25;

export class Trial {
  #specs;
  #worlds;
  #coveredByWorlds = new Set();
  #surveys = new Map();
  #wanted;
  #fingerprint;
  #folder;
  #journal;
  #workers;

  /** `fingerprint` is that of all the code but the specs. What is found is kept in `folder`. */
  constructor({ specs, worlds, wanted, fingerprint, folder, workers }) {
    this.#specs = specs;
    this.#worlds = worlds;
    this.#wanted = wanted.map(({ id }) => Number(id));
    this.#fingerprint = fingerprint;
    this.#folder = folder;
    this.#workers = workers;
    this.#journal = new Journal(join(folder, 'journal.jsonl'));
  }

  /** What is known of a change: `{ red, by }` if it was noticed. */
  verdictOf(change) {
    return this.#journal.noticed.get(change.key);
  }

  /** Whether a test comes by this change. */
  isCovered({ id }) {
    const isIn = ({ again, first }) => again.has(Number(id)) || first.has(Number(id));
    return this.#coveredByWorlds.has(id) || [...this.#surveys.values()].some(isIn);
  }

  /** Shows the open ones of these changes to these specs; `isOwn` says which of them come first, `isUnseen` whose processes come by. */
  async show(changes, specNames, { isOwn, isUnseen, withWorlds }) {
    const open = changes.filter((change) => this.verdictOf(change) === undefined);
    if (open.length === 0) return;
    await this.#survey(specNames.filter((spec) => !this.#surveys.has(spec)));
    if (this.#worlds && this.#coveredByWorlds.size === 0 && open.some(withWorlds))
      this.#coveredByWorlds = await this.#worlds.covered();
    const waiting = open.map((change) => {
      const steps = this.#stepsOf(change, specNames, { isOwn, isUnseen, withWorlds });
      return { change, steps, seconds: SECONDS_PER_CHANGE };
    });
    const total = waiting.length;
    let done = 0;
    await this.#judgeAll(waiting, ({ change }, verdict) => {
      done += 1;
      const { file, line, mutatorName } = change;
      const what = verdict ? `noticed: ${verdict.by}: ${verdict.red.test}` : 'not noticed';
      console.log(`mutation: ${done}/${total} ${file}:${line} ${mutatorName} ${what}`);
    });
  }

  async #survey(specs) {
    const unknown = specs.filter((spec) => !existsSync(this.#surveyOf(spec)));
    mkdirSync(join(this.#folder, 'surveys'), { recursive: true });
    for (let from = 0; from < unknown.length; from += BATCH) {
      const some = unknown.slice(from, from + BATCH);
      console.log(`mutation: what ${unknown.length - from} specs come by`);
      const found = await this.#specs.survey(some, this.#wanted);
      for (const [index, spec] of some.entries()) {
        if (found[index] === undefined) console.log(`mutation: cannot run: ${spec}`);
        const survey = found[index] ?? { ms: 0, tests: [], hits: {}, loaded: [] };
        writeFileSync(this.#surveyOf(spec), JSON.stringify(survey));
      }
    }
    for (const spec of specs) {
      const survey = JSON.parse(readFileSync(this.#surveyOf(spec), 'utf8'));
      this.#surveys.set(spec, byChange(survey, hashOf(readFileSync(spec, 'utf8'))));
    }
  }

  #surveyOf(spec) {
    const name = hashOf(this.#fingerprint, spec, readFileSync(spec, 'utf8'));
    return join(this.#folder, 'surveys', `${name.slice(0, 16)}.json`);
  }

  /** The judges that come by a change and have not seen it, those of its folder and the quick ones first. */
  #stepsOf(change, specNames, { isOwn, isUnseen, withWorlds }) {
    const id = Number(change.id);
    const steps = specNames.flatMap((spec) => {
      const { again = [], first, all, hits, hooksS, hash } = this.#testsFor(spec, id);
      const weight = isOwn(spec, change) ? OWN_WEIGHT : 1;
      const stepOf = (tests, isReloaded) => {
        const extra = hooksS + (isReloaded ? START_S : 0);
        const seconds = extra + tests.reduce((sum, { ms }) => sum + ms, 0) / 1_000;
        const seenAs = isReloaded ? `${hash} reloaded` : hash;
        return { judge: spec, seenAs, tests, hits, isReloaded, extra, rank: seconds * weight };
      };
      const isReloadWorthIt = again.length === 0 || isOwn(spec, change);
      if (!isReloadWorthIt) return [stepOf(again, false)];
      return [stepOf(again, false), stepOf(first ?? (isUnseen(spec, change) ? all : []), true)];
    });
    if (withWorlds(change) && this.#coveredByWorlds.has(change.id))
      steps.push({ judge: WORLDS, seenAs: `worlds ${this.#fingerprint}`, rank: WORLDS_RANK });
    return steps
      .filter(({ judge, tests }) => judge === WORLDS || tests.length > 0)
      .filter(({ seenAs }) => !this.#journal.hasSeen(change, seenAs))
      .sort((a, b) => a.rank - b.rank);
  }

  #testsFor(spec, id) {
    const { again, first, hits, ...others } = this.#surveys.get(spec);
    return { ...others, again: again.get(id), first: first.get(id), hits: hits[id] };
  }

  async #judgeAll(waiting, onDone) {
    let inWork = 0;
    const nextOf = (item) => {
      while (item.steps.length > 0) {
        const step = withinTime(item.steps[0], item.seconds);
        if (step !== undefined) return step;
        item.steps.shift();
      }
      return undefined;
    };
    const waitingFor = new Map();
    const line = (item) => {
      const step = nextOf(item);
      if (step === undefined) return onDone(item);
      const name = step.isReloaded ? `${step.judge} reloaded` : step.judge;
      if (!waitingFor.has(name)) waitingFor.set(name, []);
      waitingFor.get(name).push({ item, step });
    };
    for (const item of waiting) line(item);
    const worker = async () => {
      for (;;) {
        const [longest] = [...waitingFor].sort(([, a], [, b]) => b.length - a.length);
        if (longest === undefined) {
          if (inWork === 0) return;
          await sleep(200);
          continue;
        }
        const [name, all] = longest;
        const batch = all.splice(0, BATCH);
        if (all.length === 0) waitingFor.delete(name);
        inWork += 1;
        await this.#judge(batch, (entry, { red, seconds }) => {
          const { item, step } = entry;
          this.#journal.add(item.change, step, red);
          if (red) return onDone(item, { red, by: step.judge });
          item.seconds -= seconds;
          item.steps.shift();
          line(item);
        });
        inWork -= 1;
      }
    };
    await Promise.all(Array.from({ length: this.#workers }, worker));
  }

  async #judge(batch, onVerdict) {
    const [{ step }] = batch;
    const shown = ({ item, step: { tests, hits } }) => ({ id: item.change.id, tests, hits });
    if (step.judge === WORLDS || step.isReloaded) {
      for (const entry of batch)
        onVerdict(
          entry,
          step.judge === WORLDS
            ? await this.#worlds.judge(entry.item.change)
            : await this.#specs.judgeFromStart(step.judge, shown(entry)),
        );
      return;
    }
    const verdicts = await this.#specs.judge(step.judge, batch.map(shown));
    for (const entry of batch)
      onVerdict(entry, verdicts.get(entry.item.change.id) ?? { red: null, seconds: 0 });
  }
}

/** The quickest tests of a step, as many as there is time for. */
function withinTime(step, seconds) {
  if (step.judge === WORLDS) return step;
  let left = seconds - step.extra;
  const tests = step.tests
    .toSorted((a, b) => a.ms - b.ms)
    .filter(({ ms }) => (left -= ms / 1_000) >= 0);
  return tests.length > 0 ? { ...step, tests } : undefined;
}

/** A survey by what it says of each change. */
function byChange({ ms, tests, hits, loaded }, hash) {
  const green = tests.map((test, index) => ({ ...test, index })).filter(({ isGreen }) => isGreen);
  const testsOf = (idsOf) => {
    const found = new Map();
    for (const test of green)
      for (const id of idsOf(test)) {
        if (!found.has(id)) found.set(id, []);
        found.get(id).push({ index: test.index, ms: test.ms });
      }
    return found;
  };
  const again = testsOf((test) => test.again);
  const first = testsOf((test) => new Set([...test.first, ...loaded]));
  const ofTests = tests.reduce((sum, test) => sum + test.ms, 0);
  const hooksS = Math.max(0, ms - ofTests) / 1_000;
  return { hits, hash, hooksS, again, first, all: green.map(({ index, ms }) => ({ index, ms })) };
}

/** What each change has come to, for the next run: noticed, or the judges that have not noticed it. */
class Journal {
  noticed = new Map();
  #seen = new Set();
  #path;

  constructor(path) {
    this.#path = path;
    mkdirSync(dirname(path), { recursive: true });
    if (!existsSync(path)) return;
    for (const text of readFileSync(path, 'utf8').split('\n').filter(Boolean))
      this.#take(JSON.parse(text));
  }

  add({ key }, { judge, seenAs }, red) {
    const entry = { key, by: judge, seenAs, red };
    appendFileSync(this.#path, `${JSON.stringify(entry)}\n`);
    this.#take(entry);
  }

  hasSeen({ key }, seenAs) {
    return this.#seen.has(`${key} ${seenAs}`);
  }

  #take({ key, by, seenAs, red }) {
    if (red) this.noticed.set(key, { by, red });
    else this.#seen.add(`${key} ${seenAs}`);
  }
}
