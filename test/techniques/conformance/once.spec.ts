import { memory, oneRedis, threeMasterCluster } from './backends.js';
import { describeOnce } from './once-suite.js';

describeOnce('a memory store', memory);
describeOnce('one Redis', oneRedis);
describeOnce('a Redis Cluster of three masters', threeMasterCluster);
