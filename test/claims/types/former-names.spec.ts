import { expect, it } from '@jest/globals';
import ts from 'typescript';
import { compilerHost, compilerOptions } from './compiler.js';

it('an editor strikes former names out, and no current ones', () => {
  const file = `${process.cwd()}/test/claims/types/struck-out.ts`;
  const text = `
    import { LockModule, type LockEvents, type LockService, type LockDefinition } from 'nestjs-holdfast';
    declare const [locks, lock]: [LockService, LockDefinition<'a'>];
    LockModule.forRoot({ store: 'memory', maxClockStep: '1h' });
    LockModule.forRoot({ store: 'memory', fencingTokenRetention: '1h' });
    locks.on('once', () => undefined);
    locks.on('handedOn', () => undefined);
    locks.on('limitsDiffer', () => undefined);
    locks.on('onceAttempt', ({ phase }) => phase);
    locks.on('lost', ({ reason }) => reason);
    locks.use(lock);
    locks.for(lock);
    export type Attempt = LockEvents['onceAttempt'];`;
  const options = compilerOptions();
  const host = compilerHost(options, new Map([[file, text]]));
  const service = ts.createLanguageService({
    fileExists: host.fileExists,
    readFile: host.readFile,
    getCurrentDirectory: () => process.cwd(),
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    getCompilationSettings: () => options,
    getScriptFileNames: () => [file],
    getScriptVersion: () => '1',
    getScriptSnapshot: (name) => {
      const read = host.readFile(name);
      return read === undefined ? undefined : ts.ScriptSnapshot.fromString(read);
    },
  });
  expect(service.getSemanticDiagnostics(file)).toEqual([]);
  const struckOut = service
    .getSuggestionDiagnostics(file)
    .filter(({ reportsDeprecated }) => reportsDeprecated !== undefined)
    .map(({ start }) => text.slice(0, start).split('\n').length);
  expect(struckOut).toEqual([6, 7, 8, 11]);
  // The compiler reports no option of an object literal. An editor shows the tag.
  const option = service.getQuickInfoAtPosition(file, text.indexOf('maxClockStep'));
  expect(option?.tags?.map(({ name }) => name)).toEqual(['deprecated']);
});
