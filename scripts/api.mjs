/**
 * `npm run api`: compares the public API, as the built declarations in `dist/` have it, with the reviewed reports in test/claims/public-api/, one for
 * each entry of the package. `npm run api -- --write` updates the reports: what changes in them is what changes for users.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor';

const projectRoot = fileURLToPath(new URL('../', import.meta.url));
const REPORTS = join(projectRoot, 'test/claims/public-api');
const writes = process.argv.includes('--write');

const manifest = join(projectRoot, 'package.json');
const { exports } = JSON.parse(readFileSync(manifest, 'utf8'));

/** `board` of `./board`; the main entry is `main`. */
const nameOf = (entry) => (entry === '.' ? 'main' : entry.slice('./'.length));

/** The extractor writes here what it found, and compares it with the report. */
const temporary = mkdtempSync(join(tmpdir(), 'holdfast-api-'));

function configOf(name, types) {
  return ExtractorConfig.prepare({
    configObjectFullPath: undefined,
    packageJsonFullPath: manifest,
    configObject: {
      projectFolder: projectRoot,
      mainEntryPointFilePath: join(projectRoot, types),
      compiler: { tsconfigFilePath: join(projectRoot, 'tsconfig.json') },
      apiReport: {
        enabled: true,
        // The options of calls are types of schemas that are not exported. The other entries need not show them again.
        includeForgottenExports: name === 'main',
        reportFileName: `${name}.api.md`,
        reportFolder: REPORTS,
        reportTempFolder: temporary,
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      newlineKind: 'lf',
      // The report shows what users see. Whether comments are complete is for other checks, and types of results need no name.
      messages: {
        compilerMessageReporting: { default: { logLevel: 'error' } },
        extractorMessageReporting: { default: { logLevel: 'none' } },
        tsdocMessageReporting: { default: { logLevel: 'none' } },
      },
    },
  });
}

const changed = [];
try {
  for (const [entry, { types }] of Object.entries(exports)) {
    if (types === undefined) continue;
    const name = nameOf(entry);
    const result = Extractor.invoke(configOf(name, types), {
      localBuild: writes,
      messageCallback: (message) => {
        if (message.logLevel === 'error') console.error(`api: ${message.text}`);
        message.handled = true;
      },
    });
    if (result.errorCount > 0) process.exitCode = 1;
    if (result.apiReportChanged) changed.push(name);
  }
} finally {
  rmSync(temporary, { recursive: true });
}

if (changed.length > 0 && writes) console.log(`api: written: ${changed.join(', ')}`);
if (changed.length > 0 && !writes) {
  console.error(
    `api: the public API differs from its report: ${changed.join(', ')}. Run "npm run api -- --write" after "npm run build", and review the change.`,
  );
  process.exitCode = 1;
}
