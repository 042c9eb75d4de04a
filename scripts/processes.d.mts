import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';

/** Finds a server program, starts it with its data in memory only, and resolves with its URL. */
export declare function startRedis(log: (line: string) => void): Promise<string>;

/** Starts a program of Node, which gets the options that this process has: a test runs TypeScript. */
export declare function startProgram(
  program: string,
  env: Readonly<Record<string, string>>,
): ChildProcessByStdio<null, Readable, null>;

/** Runs the program of this name and kills what it has started, however it ends. An error is told, and is exit code 1. */
export declare function runToTheEnd(name: string, main: () => Promise<void>): Promise<void>;
