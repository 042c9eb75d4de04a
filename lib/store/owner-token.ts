import { randomBytes } from 'node:crypto';

/** Tells our own holders from those of other libraries, which will not wake anybody when they release. */
export const MARK = 'holdfast:';

/** 128 random bits: nobody can guess it, so nobody else can extend or release. */
export const newOwnerToken = (): string => MARK + randomBytes(16).toString('base64url');

export const isOwnerToken = (value: string): boolean => value.startsWith(MARK);
