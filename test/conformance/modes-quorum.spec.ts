import { masters } from './backends.js';
import { describeModes } from './modes-suite.js';

const SEVERAL = { limits: false, inOrder: false };

describeModes('two masters', SEVERAL, () => masters(2));
describeModes('three masters', SEVERAL, () => masters(3));
