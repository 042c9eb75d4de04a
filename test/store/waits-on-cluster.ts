/** A process that waits for a lock on a Cluster, and never gives it back: `waits-on-cluster.ts <startup nodes as JSON> <key>`. */
import { Cluster, type ClusterNode } from 'ioredis';
import { Locks } from '../support/locks.js';

const [nodes = '[]', key = ''] = process.argv.slice(2);
const client = new Cluster(JSON.parse(nodes) as ClusterNode[], { lazyConnect: true });
const locks = new Locks({ redis: client, ttl: '60s' });
await locks.acquire(key, { wait: '10m' });
