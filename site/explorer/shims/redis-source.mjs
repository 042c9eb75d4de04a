/** In place of what connects by ioredis. The simulated network has clients of its own. */
export function redisSource() {
  throw new Error('The explorer connects to simulated servers.');
}
