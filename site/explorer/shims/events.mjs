/** `LockingWorker` extends it, and the explorer has none. */
export class EventEmitter {}
