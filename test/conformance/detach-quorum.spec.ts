import { masters } from './backends.js';
import { describeDetached } from './detach-suite.js';

describeDetached('three masters', { limits: false }, () => masters(3));
describeDetached('three masters of which one is dead', { limits: false }, () => masters(3, 1));
