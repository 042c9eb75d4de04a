/** Whether a package is installed where this one is. */
function isInstalled(name: string): boolean {
  try {
    require.resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** CommonJS: only there can be asked what is installed, and `import.meta` is kept out of the library. */
export = {
  /** The folder of this file. */
  folder: __dirname,
  isInstalled,
};
