/** Before all tests: compiles what their child processes run. */
import { compiledProject } from '../../scripts/compile.mjs';

export default function setUp() {
  process.env.HOLDFAST_COMPILED = compiledProject(); // which the workers of jest inherit
}
