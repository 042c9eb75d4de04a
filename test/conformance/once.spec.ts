import { masters, memory, oneRedis, threeMasterCluster } from './backends.js';
import { describeOnce } from './once-suite.js';

describeOnce('a memory store', memory);
describeOnce('one Redis', oneRedis);
describeOnce('three masters', () => masters(3));
describeOnce('three masters of which one is dead', () => masters(3, 1));
describeOnce('a Redis Cluster of three masters', threeMasterCluster);
