import type { InstanceInfo } from 'nestjs-holdfast/admin';
import { printable } from './printable.js';

/** `orders 1.4.2`; with the name of the service where it has one: `orders 1.4.2 (audit)`. */
export function applicationOf({ application, version, service }: InstanceInfo): string {
  const named = version === undefined ? application : `${application} ${version}`;
  return printable(service === undefined ? named : `${named} (${service})`);
}

/** `web-3, pid 4711` */
export const machineOf = ({ host, pid }: InstanceInfo): string =>
  printable(`${host}, pid ${String(pid)}`);

/** `orders 1.4.2 on web-3, pid 4711` */
export const nameOf = (instance: InstanceInfo): string =>
  `${applicationOf(instance)} on ${machineOf(instance)}`;

/** `1 caller`, `5 callers` */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${String(count)} ${count === 1 ? one : many}`;
