/**
 * The path of this file, from which a package is found as this package finds it. CommonJS: `import.meta.url` would say it too, but is a
 * syntax error where Jest compiles ES modules to CommonJS.
 */
export = __filename;
