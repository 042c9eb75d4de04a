import { describe, expect, it } from '@jest/globals';
import { addressIn, SubjectLabels } from '../../lib/observe/metrics.js';

describe('what locks are counted under', () => {
  const labelOf = (labels: SubjectLabels, subject: object): unknown =>
    labels.of({ keys: ['order:42'], mode: 'exclusive', ...subject })['holdfast.key.template'];

  it('has 200 values at most, and keeps those that it knows', () => {
    const labels = new SubjectLabels();
    for (let count = 1; count <= 200; count += 1)
      expect(labelOf(labels, { template: `t${String(count)}` })).toBe(`t${String(count)}`);

    expect(labelOf(labels, { template: 't201' })).toBe('_OTHER');
    expect(labelOf(labels, { method: 'Orders.pay' })).toBe('_OTHER');
    expect(labelOf(labels, { template: 't1' })).toBe('t1');
  });

  it('is the template, else the method, and never a key', () => {
    const labels = new SubjectLabels();

    expect(labelOf(labels, { template: 'order:<id>', method: 'Orders.pay' })).toBe('order:<id>');
    expect(labelOf(labels, { method: 'Orders.pay' })).toBe('Orders.pay');
    expect(labelOf(labels, {})).toBe('_OTHER');
  });

  it('does not have the number of a limit', () => {
    const { 'holdfast.mode': mode } = new SubjectLabels().of({ keys: ['a'], mode: 'limit:7' });

    expect(mode).toBe('limit');
  });
});

describe('the address of a server', () => {
  it.each([
    ['r1:6379', { 'server.address': 'r1', 'server.port': 6379 }],
    ['::1:6379', { 'server.address': '::1', 'server.port': 6379 }],
    ['/tmp/redis.sock', { 'server.address': '/tmp/redis.sock', 'server.port': '' }],
    ['r1:6379, r2:6379', { 'server.address': 'r1:6379, r2:6379', 'server.port': '' }],
    ['r1:6379,', { 'server.address': 'r1:6379,', 'server.port': '' }],
  ])('is apart from its port, if it is one server with a port: %s', (node, labels) => {
    expect(addressIn(node)).toEqual(labels);
  });
});
