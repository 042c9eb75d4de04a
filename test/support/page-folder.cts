/** The folder with the files of the page, as `scripts/compile.mjs` has made them: there is no package beside the sources. */
export = `${process.env.HOLDFAST_COMPILED ?? ''}/packages/board/lib/board-page`;
