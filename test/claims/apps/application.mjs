/** Makes an application: the files of `nest new`, what the documentation says, and a little of a user's own. */
import { cp, readFile, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const templates = join(dirname(fileURLToPath(import.meta.url)), 'templates');

/** What the documented examples call without saying where it comes from: see templates/added/src/shop.ts. */
const SHOP = [
  ...['Order', 'Receipt'],
  ...['charge', 'ship', 'move', 'mergeOrders', 'countStock', 'writeReport'],
];

/** @param documented the blocks of the documentation by name */
export async function writeApplication(root, { folder, type, recipe }, documented, redisUrl) {
  await cp(join(templates, folder), root, { recursive: true });
  await cp(join(templates, 'added'), root, { recursive: true });
  for (const name of ['orders.service', 'report.job'].map(sourceFile)) {
    await writeFile(join(root, name), withShop(documented(name)));
  }
  await writeFile(
    join(root, sourceFile('orders.module')),
    withRedis(documented(sourceFile('app.module')), redisUrl),
  );
  const spec = 'src/orders.service.spec.ts';
  await writeFile(join(root, spec), specOf(documented(spec)));
  await edit(root, 'src/app.module.ts', moduleOf);
  await edit(root, 'src/main.ts', withShutdownHooks);
  if (type === 'module') await nameExtensions(root);
  if (recipe !== undefined) await setUpJest(root, JSON.parse(documented(recipe)));
}

/** Gives these settings to the unit tests and to the e2e tests. */
async function setUpJest(root, settings) {
  await editJson(root, 'package.json', (manifest) => ({
    ...manifest,
    jest: { ...manifest.jest, ...settings },
  }));
  await editJson(root, 'test/jest-e2e.json', (config) => ({ ...config, ...settings }));
}

const sourceFile = (name) => `src/${name}.ts`;

function withShop(code) {
  const used = SHOP.filter((name) => new RegExp(`(?<![\\w.]|async )${name}\\b`).test(code));
  return `import { ${used.join(', ')} } from './shop';\n${code}`;
}

/** A sample with `await` at its top level, as a test. */
function specOf(code) {
  const lines = code.split('\n');
  const isImport = (line) => line.startsWith('import ');
  const body = lines.filter((line) => !isImport(line)).join('\n');
  return [
    ...lines.filter(isImport),
    "import { OrdersService } from './orders.service';",
    `\nit('does what the documentation says', async () => {${body}});\n`,
  ].join('\n');
}

const withRedis = (code, redisUrl) => replaced(code, { 'redis://localhost:6379': redisUrl });

/** The module of `nest new`, with the documented one, which is pasted as it stands. */
function moduleOf(code) {
  const added = [
    "import { ScheduleModule } from '@nestjs/schedule';",
    "import { AppModule as OrdersModule } from './orders.module';",
    "import { OrdersService } from './orders.service';",
    "import { ReportJob } from './report.job';",
    "import { ShopController } from './shop.controller';",
    "import { TickJob } from './tick.job';",
  ];
  return replaced(`${added.join('\n')}\n${code}`, {
    'imports: []': 'imports: [OrdersModule, ScheduleModule.forRoot()]',
    'controllers: [AppController]': 'controllers: [AppController, ShopController]',
    'providers: [AppService]': 'providers: [AppService, OrdersService, ReportJob, TickJob]',
  });
}

const withShutdownHooks = (code) =>
  replaced(code, { '  await app.listen': '  app.enableShutdownHooks();\n  await app.listen' });

function replaced(code, replacements) {
  return Object.entries(replacements).reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`The code has no "${from}"`);
    return text.replace(from, to);
  }, code);
}

/** ES modules name the file that they import. */
async function nameExtensions(root) {
  for (const folder of ['src', 'test']) {
    for (const name of await readdir(join(root, folder))) {
      await edit(root, join(folder, name), (code) =>
        code.replaceAll(/(from '(?:\.[^']*|supertest\/types))(?<!\.js)'/g, "$1.js'"),
      );
    }
  }
}

async function edit(root, name, change) {
  const file = join(root, name);
  await writeFile(file, change(await readFile(file, 'utf8')));
}

const editJson = (root, name, change) =>
  edit(root, name, (text) => JSON.stringify(change(JSON.parse(text)), null, 2));
