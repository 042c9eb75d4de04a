import { randomUUID } from 'node:crypto';

/** Tells our own holders from those of other libraries, which will not wake anybody when they release. */
export const MARK = 'holdfast:';

/** 122 random bits: nobody can guess it, so nobody else can extend or release. */
export const newOwnerToken = (maker = ''): string => MARK + maker + randomUUID();

/** Whether a token was made for this maker. */
export const isOwnToken = (value: string, maker: string): boolean => value.startsWith(MARK + maker);

export const isOwnerToken = (value: string): boolean => value.startsWith(MARK);
