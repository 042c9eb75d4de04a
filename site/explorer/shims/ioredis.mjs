/** In place of ioredis: the simulated network has clients of its own, which take only the class of its errors. */
export default { ReplyError: class ReplyError extends Error {} };
