/**
 * The environment of the tests where HOLDFAST_CLIENT is set: skips what `exceptions.mjs` names, and writes of each test what became of it to
 * the file HOLDFAST_CLIENT_RECORD, one line for each spec.
 */
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import Environment from '../environment.mjs';
import { exceptionFor } from './exceptions.mjs';

const projectRoot = fileURLToPath(new URL('../../../', import.meta.url));
const { HOLDFAST_CLIENT: client, HOLDFAST_CLIENT_RECORD: record } = process.env;

export default class ClientEnvironment extends Environment {
  /** Of each test of this spec. */
  #tests = [];
  #spec;

  constructor(config, context) {
    super(config, context);
    this.#spec = relative(projectRoot, context.testPath);
  }

  handleTestEvent({ name, test }) {
    if (name === 'test_start') {
      const reason = exceptionFor(client, this.#spec, titleOf(test));
      if (reason === undefined) return;
      test.mode = 'skip';
      this.#tests.push({ title: titleOf(test), status: 'left out', reason });
    } else if (name === 'test_done') {
      const status = test.errors.length === 0 ? 'passed' : 'failed';
      this.#tests.push({ title: titleOf(test), status, ...this.#usedClients() });
    }
  }

  async teardown() {
    // Those of hooks, too: a service may be made for all tests of a spec.
    const line = { client, spec: this.#spec, tests: this.#tests, ...this.#usedClients() };
    if (record !== undefined) appendFileSync(record, `${JSON.stringify(line)}\n`);
    await super.teardown();
  }

  /** Since the spec began. */
  #usedClients() {
    return { made: 0, given: 0, ...this.global.holdfastUsedClients };
  }
}

function titleOf(test) {
  const titles = [];
  for (let block = test; block.parent !== undefined; block = block.parent)
    titles.unshift(block.name);
  return titles.join(' ');
}
