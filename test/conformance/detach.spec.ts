import { memory, oneRedis, threeMasterCluster } from './backends.js';
import { describeDetached } from './detach-suite.js';

describeDetached('a memory store', { limits: true }, memory);
describeDetached('one Redis', { limits: true }, oneRedis);
describeDetached('a Redis Cluster of three masters', { limits: true }, threeMasterCluster);
