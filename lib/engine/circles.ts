import { WaitsFor } from '../sections/waits-for.js';

/** What callers of all services of the process wait for: together they can close one circle. */
export const waitsFor = new WaitsFor();
