import { memory, oneRedis, threeMasterCluster } from './backends.js';
import { describeModeChanges } from './mode-changes-suite.js';

const ONE = { upgrades: true };

describeModeChanges('a memory store', ONE, memory);
describeModeChanges('one Redis', ONE, oneRedis);
describeModeChanges('a Redis Cluster of three masters', ONE, threeMasterCluster);
