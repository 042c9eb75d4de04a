import { memory, oneRedis } from '../conformance/backends.js';
import { describeAdmin } from './admin-suite.js';

describeAdmin('a memory store', memory);
describeAdmin('one Redis', oneRedis);
