import { masters } from './backends.js';
import { describeModes } from './modes-suite.js';

const SEVERAL = { limits: false, inOrder: false };

describeModes('three masters of which one is dead', SEVERAL, () => masters(3, 1));
describeModes('five masters of which two are dead', SEVERAL, () => masters(5, 2));
