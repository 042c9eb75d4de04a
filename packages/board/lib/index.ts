/** `@nestjs-holdfast/board`: a page inside the application that shows locks and frees them. */
export type { LockBoardOptions } from './board-options.js';
export { LockBoardModule } from './lock-board.module.js';
