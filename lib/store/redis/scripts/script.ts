import { createHash } from 'node:crypto';

/** A Lua script and the name Redis keeps it under. */
export interface Script {
  readonly lua: string;
  readonly sha: string;
}

export const script = (lua: string): Script => ({
  lua,
  sha: createHash('sha1').update(lua).digest('hex'),
});
