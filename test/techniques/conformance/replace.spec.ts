import { memory, oneRedis, threeMasterCluster } from './backends.js';
import { describeReplaced } from './replace-suite.js';

describeReplaced('a memory store', memory);
describeReplaced('one Redis', oneRedis);
describeReplaced('a Redis Cluster of three masters', threeMasterCluster);
