export { LockBoardModule } from './lock-board.module.js';
export { LOCK_BOARD_DATA } from './board-data.js';
export type { LockBoardOptions } from './board-options.js';
