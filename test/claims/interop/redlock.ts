/** The package `redlock` 5, with its types. */
// @ts-expect-error its "exports" do not name them, so the compiler does not find them by the name of the package
import * as untyped from 'redlock';
import type * as redlock from '../../../node_modules/redlock/dist/index.js';

export const { default: Redlock, ExecutionError, ResourceLockedError }: typeof redlock = untyped;
export type Redlock = redlock.default;
export type Lock = redlock.Lock;
