/** In place of the packages of clients. The simulated network has clients of its own. */
export function redisSource() {
  throw new Error('The explorer connects to simulated servers.');
}

export const isLocatedClient = () => false;

export const isClusterClient = () => false;
