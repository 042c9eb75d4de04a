import { memory } from './backends.js';
import { describeStore } from './suite.js';

describeStore('a memory store', memory);
