import { masters } from './backends.js';
import { describeStore } from './suite.js';

describeStore('three masters of which one is dead', () => masters(3, 1));
describeStore('five masters of which two are dead', () => masters(5, 2));
