import { share } from './soak.js';

/**
 * With how many inputs a property is tried: so many in `npm test`, more in `npm run test:soak`, and in `npm run test:hostile` as many as that
 * says. An input that breaks one is printed with the seed that draws it again.
 */
export function cases(few: number, some = few * 4): number {
  const asked = Number(process.env.HOLDFAST_CASES);
  return asked > 0 ? asked : share(few, some);
}
