export const redirects: Readonly<Record<string, string>>;
export function redirectTo(address: string): string;
