import { masters } from './backends.js';
import { describeStore } from './suite.js';

describeStore('three masters', () => masters(3));
