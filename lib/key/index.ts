export { canonicalKeys, checkKey } from './check-key.js';
export { encodeKeyValue } from './encode.js';
export { parseKeyTemplate, type KeyTemplate, type KeyTemplateContext } from './key-template.js';
export { lockKey } from './lock-key.js';
export type { RequestValues } from './read-path.js';
