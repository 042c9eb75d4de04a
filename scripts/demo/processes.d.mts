import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';

/** Finds a server program, starts it with its data in memory only, and resolves with its URL. */
export declare function startRedis(log?: (line: string) => void): Promise<string>;

/** Starts a program of Node, which gets the options that this process has: a test runs TypeScript. */
export declare function startProgram(
  program: string,
  env: Readonly<Record<string, string>>,
): ChildProcessByStdio<null, Readable, null>;

/** Kills all of them. For the end, whatever it is: does not wait. */
export declare function killAll(): void;
