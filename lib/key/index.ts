export { canonicalKeys, checkKey } from './check-key.js';
export { parseKeyTemplate, type KeyTemplate } from './key-template.js';
export { lockKey, nameOfKeys } from './lock-key.js';
export type { RequestValues } from './placeholders.js';
export { parseNamedTemplate } from './template-parts.js';
