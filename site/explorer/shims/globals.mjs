/** What the library and the simulation expect of every global scope. Imported before them. */

/** Owner tokens name their maker in base64url, and the model counts bytes of keys that are not ASCII. */
class SmallBuffer extends Uint8Array {
  toString(encoding) {
    if (encoding === 'utf8' || encoding === undefined) return new TextDecoder().decode(this);
    const text = String.fromCharCode(...this);
    if (encoding === 'latin1') return text;
    return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  }

  static from(content, encoding = 'utf8') {
    if (typeof content !== 'string') return super.from(content);
    if (encoding === 'hex')
      return super.from(content.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
    if (encoding === 'latin1') return super.from(content, (letter) => letter.charCodeAt(0));
    return super.from(new TextEncoder().encode(content));
  }

  static byteLength(text) {
    return new TextEncoder().encode(text).length;
  }
}

globalThis.Buffer ??= SmallBuffer;
// `compose.ts` reads NODE_ENV, and `settle.ts` looks for what only Node has. The explorer waits for turns of the event loop instead.
globalThis.process ??= { env: { NODE_ENV: 'production' } };
// Firefox before 138 has none. The places of calls are not shown.
Error.captureStackTrace ??= (target) => {
  target.stack = '';
};
