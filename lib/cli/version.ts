import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The version of this package: of the nearest package.json at or above a folder that names it and has one. */
export function versionAt(folder: string): string {
  const file = join(folder, 'package.json');
  const { name, version }: { name?: string; version?: string } = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as object)
    : {};
  if (name === 'nestjs-holdfast' && version !== undefined) return version;
  return dirname(folder) === folder ? 'unknown' : versionAt(dirname(folder));
}
