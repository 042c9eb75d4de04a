/** Operators are named by these. The explorer has none. */
export const hostname = () => 'browser';
export const userInfo = () => ({ username: 'reader' });
