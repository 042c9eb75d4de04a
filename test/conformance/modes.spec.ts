import { masters, memory, oneRedis, threeMasterCluster } from './backends.js';
import { describeModes } from './modes-suite.js';

const ONE = { limits: true, inOrder: true };
const SEVERAL = { limits: false, inOrder: false };

describeModes('a memory store', ONE, memory);
describeModes('one Redis', ONE, oneRedis);
describeModes('two masters', SEVERAL, () => masters(2));
describeModes('three masters', SEVERAL, () => masters(3));
describeModes('three masters of which one is dead', SEVERAL, () => masters(3, 1));
describeModes('five masters of which two are dead', SEVERAL, () => masters(5, 2));
describeModes('a Redis Cluster of three masters', ONE, threeMasterCluster);
