import { memory, oneRedis, threeMasterCluster } from './backends.js';
import { describeModes } from './modes-suite.js';

describeModes('a memory store', memory);
describeModes('one Redis', oneRedis);
describeModes('a Redis Cluster of three masters', threeMasterCluster);
