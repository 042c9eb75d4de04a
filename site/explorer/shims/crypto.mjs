/**
 * The names of scripts and the run ids of servers have to differ, and to be the same whenever they are made of the same text. Both ends of
 * the simulated network use this function, so it need not be SHA-1, which browsers have as a promise only.
 */
export function createHash() {
  let text = '';
  return {
    update(more) {
      text += more;
      return this;
    },
    digest: () => Array.from({ length: 5 }, (_, part) => hexOf(text, part)).join(''),
  };
}

/** FNV-1a, with another beginning for each part. */
function hexOf(text, part) {
  let bits = 0x811c9dc5 ^ Math.imul(part + 1, 0x9e3779b1);
  for (let index = 0; index < text.length; index += 1)
    bits = Math.imul(bits ^ text.charCodeAt(index), 0x01000193);
  return (bits >>> 0).toString(16).padStart(8, '0');
}

/** Of the runtime of a system. A simulated one has its own. */
export function randomUUID() {
  throw new Error('The explorer has a runtime of its own.');
}
