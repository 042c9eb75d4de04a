/** Of what is repeated in a message, so much is shown. */
const LONGEST_SHOWN = 200;

/** A text as a message repeats it: nobody reads a megabyte. */
export const shortened = (text: string, longest = LONGEST_SHOWN): string =>
  text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
