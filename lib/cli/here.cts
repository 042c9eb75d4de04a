/** The folder of this file. CommonJS: `import.meta` is kept out of the library. */
export = __dirname;
