/** `LockingWorker` extends it, and the explorer has none. */
export class EventEmitter {}

/** Browsers do not list listeners. It is asked for forgotten locks only, and the explorer forgets none. */
export const getEventListeners = () => [];
