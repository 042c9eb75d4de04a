/** A command of nest-commander, for commander.spec.ts. */
import { Module } from '@nestjs/common';
import { Command, CommandFactory, CommandRunner } from 'nest-commander';
import { LockError, LockModule, WithLock } from 'nestjs-holdfast';

const [redis = '', ...command] = process.argv.slice(2);
process.argv.splice(2, Infinity, ...command);

@Command({ name: 'close', arguments: '<month>' })
class CloseMonth extends CommandRunner {
  @WithLock('month:<passed.0>')
  async run(passed: string[]): Promise<void> {
    console.log(`closed ${passed.join()}`);
  }
}

@Module({ imports: [LockModule.forRoot({ redis })], providers: [CloseMonth] })
class AppModule {}

await CommandFactory.run(AppModule, {
  serviceErrorHandler: (error) => {
    console.error(error instanceof LockError ? error.detail : error);
    process.exitCode = 1;
  },
});
