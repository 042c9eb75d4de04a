import { masters, threeMasterCluster } from '../conformance/backends.js';
import type { Backend } from '../conformance/suite.js';
import { describeAdmin } from './admin-suite.js';

/** Places need one Redis that counts them. */
const withoutLimits = (backend: Backend): Backend => ({ ...backend, hasLimits: false });

describeAdmin('three masters', () => masters(3).then(withoutLimits));
describeAdmin('three masters of which one is dead', () => masters(3, 1).then(withoutLimits));
describeAdmin('a Redis Cluster of three masters', threeMasterCluster);
