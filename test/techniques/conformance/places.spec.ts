import { memory, oneRedis, threeMasterCluster } from './backends.js';
import { describePlaces } from './places-suite.js';

describePlaces('a memory store', memory);
describePlaces('one Redis', oneRedis);
describePlaces('a Redis Cluster of three masters', threeMasterCluster);
