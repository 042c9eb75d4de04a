/** How much of a repeated text a message shows. */
const LONGEST_SHOWN = 200;

/** A text as a message repeats it, without the rest of a very long one. */
export const shortened = (text: string, longest = LONGEST_SHOWN): string =>
  text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
