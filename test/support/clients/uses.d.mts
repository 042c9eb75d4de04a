export type Use = 'made' | 'given';

export function noteUse(use: Use): void;

export function usesIn(file: string): Readonly<Record<Use, number>>;
