import { masters, threeMasterCluster } from '../techniques/conformance/backends.js';
import type { Backend } from '../techniques/conformance/suite.js';
import { describeAdmin } from './admin-suite.js';

const onlyExclusive = (backend: Backend): Backend => ({ ...backend, hasModes: false });

describeAdmin('three masters', () => masters(3).then(onlyExclusive));
describeAdmin('three masters of which one is dead', () => masters(3, 1).then(onlyExclusive));
describeAdmin('a Redis Cluster of three masters', threeMasterCluster);
