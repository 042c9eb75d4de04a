import { memory, oneRedis, threeMasterCluster } from './backends.js';
import { describeDetached } from './detach-suite.js';

describeDetached('a memory store', memory);
describeDetached('one Redis', oneRedis);
describeDetached('a Redis Cluster of three masters', threeMasterCluster);
