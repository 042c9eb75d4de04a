import { expect, it } from '@jest/globals';
import { LockService } from 'nestjs-holdfast';
import { LockAdmin } from 'nestjs-holdfast/admin';
import {
  masters,
  startServers,
  stopAll,
  threeMasterCluster,
} from '../techniques/conformance/backends.js';
import type { Backend } from '../techniques/conformance/suite.js';
import { describeAdmin } from './admin-suite.js';

const onlyExclusive = (backend: Backend): Backend => ({ ...backend, hasModes: false });

describeAdmin('three masters', () => masters(3).then(onlyExclusive));
describeAdmin('three masters of which one is dead', () => masters(3, 1).then(onlyExclusive));
describeAdmin('a Redis Cluster of three masters', threeMasterCluster);

it('shows a lock as held while one of the masters that have it does not reply', async () => {
  const servers = await startServers(3);
  const service = new LockService({ redis: servers.map(({ url }) => url), autoExtend: false });
  try {
    await service.open();
    await service.acquire('order:42');
    await servers[0]?.command('DEL', 'lock:order:42');
    servers[1]?.freeze();
    const admin = new LockAdmin(service);
    expect(await admin.describe('order:42')).toMatchObject({ state: 'held', holders: [{}] });
    expect(await service.inspect('order:42')).toMatchObject({ held: true });
  } finally {
    await stopAll(servers);
    await service.shutdown(0);
  }
});
