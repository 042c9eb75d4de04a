import { masters } from './backends.js';
import { describeStore } from './suite.js';

describeStore('one master in a list', () => masters(1));
describeStore('two masters', () => masters(2));
