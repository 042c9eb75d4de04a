/** `nestjs-holdfast/terminus`: whether locks can be granted, as a health indicator of `@nestjs/terminus`. */
export { LockHealthIndicator, type LockHealthOptions } from './lock-health.indicator.js';
