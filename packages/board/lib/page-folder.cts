/** The folder with the files of the page, beside this file in the package. CommonJS for the reason that this-file.cts has. */
export = `${__dirname}/board-page`;
