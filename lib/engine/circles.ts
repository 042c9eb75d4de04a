import { WaitsFor } from '../sections/waits-for.js';

/** Of all services of the process: what they wait for can close one circle. */
export const waitsFor = new WaitsFor();
