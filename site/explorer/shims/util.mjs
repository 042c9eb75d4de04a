/** For the texts of answers that no Redis gives. */
export const inspect = (value) => JSON.stringify(value);
