import { masters, memory, oneRedis, threeMasterCluster } from './backends.js';
import { describeModeChanges } from './mode-changes-suite.js';

const ONE = { upgrades: true };

describeModeChanges('a memory store', ONE, memory);
describeModeChanges('one Redis', ONE, oneRedis);
describeModeChanges('a Redis Cluster of three masters', ONE, threeMasterCluster);
describeModeChanges('three masters', { upgrades: false }, () => masters(3));
