const GUIDE = 'https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/migrating.md';

/** The comment for what has to be done by hand, with the part of the guide that explains it. */
export const markLine = (text: string, heading: string): string =>
  `// TODO(nestjs-holdfast): ${text} ${GUIDE}#${heading}`;
