import fs = require('node:fs');
import path = require('node:path');

/** A file of the page, as it lies beside this one in the package. CommonJS for the reason that this-file.cts has. */
export = (name: string): string =>
  fs.readFileSync(path.join(__dirname, 'board-page', name), 'utf8');
