import type { Comment } from './comments.mjs';

export function luaCommentsIn(source: string): readonly Comment[];
