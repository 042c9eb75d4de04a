/** No client of Redis: the simulated network has clients of its own. */
export default () => undefined;
