/**
 * For tests that can go on for as long as one likes: `npm test` has them do a share, `npm run test:soak` the whole. A share is large
 * enough to be red when what it guards is broken.
 */
export const share = <T>(ofIt: T, whole: T): T => (process.env.HOLDFAST_SOAK ? whole : ofIt);
