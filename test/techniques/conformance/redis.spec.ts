import { oneRedis } from './backends.js';
import { describeStore } from './suite.js';

describeStore('one Redis', oneRedis);
