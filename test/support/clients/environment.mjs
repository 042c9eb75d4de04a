/**
 * The environment of tests with the clients of a package (jest.config.js): skips what `exceptions.mjs` names, and writes of each test what became of it to
 * the file HOLDFAST_CLIENT_RECORD, one line for each spec. A test counts if the library was given a client of that package in it, or in
 * the hooks around it.
 */
import { randomUUID } from 'node:crypto';
import { appendFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import Environment from '../environment.mjs';
import { exceptionFor } from './exceptions.mjs';
import { usesIn } from './uses.mjs';

const projectRoot = fileURLToPath(new URL('../../../', import.meta.url));
const { HOLDFAST_CLIENT_RECORD: record } = process.env;

/** Of tests that give the library a client themselves, or say what the package cannot say. */
const GIVES_ITS_OWN =
  'the test gives a client of ioredis, or an address that the client does not have';

export default class ClientEnvironment extends Environment {
  #client;
  /** Of each test of this spec. */
  #tests = [];
  #spec;
  /** Where this process and its children note what they use. */
  #uses;
  /** A client was made for the whole spec. */
  #isForAll;
  /** What was used when the present outermost block began, and how many tests were over. */
  #before;
  /** What was used when the test began. */
  #beforeTest;

  constructor(config, context) {
    super(config, context);
    this.#client = config.projectConfig.testEnvironmentOptions.client;
    this.global.process.env.HOLDFAST_CLIENT = this.#client;
    this.#spec = relative(projectRoot, context.testPath);
    this.#uses = join(tmpdir(), `holdfast-uses-${process.pid}-${randomUUID()}`);
    this.global.process.env.HOLDFAST_CLIENT_USES = this.#uses;
  }

  handleTestEvent({ name, test, describeBlock }) {
    if (name === 'run_describe_start' && isOutermost(describeBlock)) {
      this.#before = { ...this.#used(), tests: this.#tests.length };
      this.#isForAll ??= this.#before.made > 0;
    }
    if (name === 'run_describe_finish' && isOutermost(describeBlock)) this.#leaveOutOthers();
    if (name === 'test_start') this.#begin(test);
    if (name === 'test_done') this.#end(test);
  }

  #begin(test) {
    const title = titleOf(test);
    this.#beforeTest = this.#used();
    const reason = exceptionFor(this.#client, this.#spec, title);
    if (reason === undefined) return;
    test.mode = 'skip';
    this.#tests.push({ title, status: 'left out', reason });
  }

  #end(test) {
    const title = titleOf(test);
    const status = test.errors.length === 0 ? 'passed' : 'failed';
    const { given } = this.#used();
    const isOwn = status === 'passed' && given > this.#beforeTest.given;
    this.#tests.push(
      isOwn ? { title, status: 'left out', reason: GIVES_ITS_OWN } : { title, status },
    );
  }

  /** A block in which no client was made is about something else, such as the memory store. */
  #leaveOutOthers() {
    const { made, tests } = this.#before;
    if (this.#isForAll || this.#used().made > made) return;
    for (const test of this.#tests.slice(tests))
      if (test.status === 'passed') test.status = 'without a client';
  }

  async teardown() {
    const line = { client: this.#client, spec: this.#spec, tests: this.#tests };
    if (record !== undefined) appendFileSync(record, `${JSON.stringify(line)}\n`);
    rmSync(this.#uses, { force: true });
    await super.teardown();
  }

  #used() {
    return usesIn(this.#uses);
  }
}

/** A block of the spec itself. */
const isOutermost = ({ parent }) => parent !== undefined && parent.parent === undefined;

function titleOf(test) {
  const titles = [];
  for (let block = test; block.parent !== undefined; block = block.parent)
    titles.unshift(block.name);
  return titles.join(' ');
}
