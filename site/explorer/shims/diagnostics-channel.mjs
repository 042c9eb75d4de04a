/** Channels that nobody subscribes to: the explorer listens to the events of each service. */
const SILENT = { hasSubscribers: false };

export const channel = () => SILENT;
export const tracingChannel = () => SILENT;
export const subscribe = () => undefined;
export const unsubscribe = () => false;
