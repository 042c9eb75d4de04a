import { Test } from '@nestjs/testing';
import { LockTestingModule, TestLocks } from 'nestjs-holdfast/testing';
import { TickJob } from './tick.job';

describe('TickJob', () => {
  it('locks the fire time of its run', async () => {
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot()],
      providers: [TickJob],
    }).compile();
    await module.init();

    await module.get(TickJob).tick();

    expect(module.get(TestLocks).acquired).toEqual([
      expect.stringMatching(/^tick:\d{8}T\d{6}Z$/),
    ]);
    await module.close();
  });
});
