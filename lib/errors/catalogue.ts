const CATALOGUE = 'https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/errors.md';

/** Where docs/errors.md says what caused an error with this code, and what to do. */
export const docsOf = (code: string): string => `${CATALOGUE}#${code.toLowerCase()}`;
