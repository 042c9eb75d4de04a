import { memory, oneRedis, threeMasterCluster } from './backends.js';
import { describeModes } from './modes-suite.js';

const ONE = { limits: true, inOrder: true };

describeModes('a memory store', ONE, memory);
describeModes('one Redis', ONE, oneRedis);
describeModes('a Redis Cluster of three masters', ONE, threeMasterCluster);
