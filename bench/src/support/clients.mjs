import { Redis } from 'ioredis';

/** A client of ioredis for each server, as an application makes them. */
export async function connect(urls) {
  const clients = urls.map((url) => new Redis(url, { lazyConnect: true }));
  await Promise.all(clients.map((client) => client.connect()));
  return clients;
}
