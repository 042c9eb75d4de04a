/** `nestjs-holdfast/terminus`: whether locks can be granted, as a health indicator of `@nestjs/terminus`. */
export { LockHealthIndicator } from './lock-health.indicator.js';
export type { LockHealthOptions } from './lock-health-options.js';
