export function ensurePromtool(log?: (line: string) => void): string;
