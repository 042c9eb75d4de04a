import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

/** Every global of the Node that runs the linter: scripts are for Node only. */
const nodeGlobals = Object.fromEntries(
  Object.getOwnPropertyNames(globalThis).map((name) => [name, 'readonly']),
);

const NO_DEEP_NEST_IMPORTS = {
  group: ['@nestjs/*/*'],
  message: "Only Nest's public entry points: deep imports break between its versions.",
};
const NO_NEST = {
  group: ['@nestjs/*'],
  message: 'This folder knows nothing of Nest: see docs/internals/architecture.md.',
};
const NO_REDIS = {
  group: ['ioredis', '**/store/redis/**'],
  message: 'This folder knows nothing of Redis: see docs/internals/architecture.md.',
};

const NO_IOREDIS = {
  regex: '^ioredis(/|$)',
  message: 'Only lib/store/redis/client/ioredis knows ioredis: see client/redis-client.ts.',
};

const FROM_THE_RUNTIME = 'Take it from the Runtime: see lib/time/runtime.ts.';

/** Time, chance and ids come from the one `Runtime`, so that a simulation can decide them. */
const NO_CLOCKS = [
  'performance',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'clearTimeout',
  'clearInterval',
  'clearImmediate',
].map((name) => ({ name, message: FROM_THE_RUNTIME }));

const NO_IMPORT_META = {
  selector: 'MetaProperty[meta.name="import"]',
  message: 'Jest may compile the library to CommonJS, where import.meta is a syntax error.',
};
const NO_CLOCKS_IN_SYNTAX = [
  'ImportDeclaration[source.value=/^node:(timers|perf_hooks)/]',
  'ImportDeclaration[source.value="node:crypto"] ImportSpecifier[imported.name=/^random|^webcrypto/]',
  'NewExpression[callee.name="Date"][arguments.length=0]',
].map((selector) => ({ selector, message: FROM_THE_RUNTIME }));

/** What a folder must not import: data flows one way through the library. */
const mustNotImport = (folders, ...patterns) => ({
  files: folders.map((folder) => `lib/${folder}/**/*.{ts,cts}`),
  rules: {
    'no-restricted-imports': ['error', { patterns: [NO_DEEP_NEST_IMPORTS, ...patterns] }],
  },
});

export default defineConfig(
  globalIgnores([
    '.mutation/',
    'build/',
    '**/dist/',
    '**/coverage/',
    'site/pages/',
    'site/.vitepress/cache/',
    'test/claims/apps/templates/',
  ]),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  js.configs.recommended,
  { rules: { eqeqeq: ['error', 'always', { null: 'ignore' }] } },
  {
    files: ['**/*.{js,mjs}'],
    languageOptions: { globals: nodeGlobals },
  },
  {
    files: ['**/*.{ts,tsx,cts}'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      // Leaves the imports alone that decorator metadata needs as values.
      '@typescript-eslint/consistent-type-imports': 'error',
      // Modules, and classes that are nothing but their decorators.
      '@typescript-eslint/no-extraneous-class': ['error', { allowWithDecorator: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unnecessary-condition': [
        'error',
        { allowConstantLoopConditions: 'only-allowed-literals' },
      ],
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      // Types that are made from something else get a name by which the compiler calls them.
      '@typescript-eslint/no-empty-object-type': [
        'error',
        { allowInterfaces: 'with-single-extends' },
      ],
      // `Record<never, never>` is how the types say "no keys".
      '@typescript-eslint/no-generated-empty-object-type': 'off',
      // Nest's option types are classes, and it means them to be given as literals.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      // `async` without `await` is how a method promises to reject and never to throw.
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    // What applications load.
    files: ['lib/**/*.{ts,cts}', 'packages/{board,redlock}/lib/**/*.{ts,cts}'],
    rules: {
      'no-console': 'error',
      'no-restricted-syntax': ['error', NO_IMPORT_META],
      'no-restricted-imports': ['error', { patterns: [NO_DEEP_NEST_IMPORTS] }],
    },
  },
  {
    files: ['lib/**/*.{ts,cts}'],
    ignores: ['lib/time/{clock,runtime}.ts'],
    rules: {
      'no-restricted-globals': ['error', ...NO_CLOCKS],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: FROM_THE_RUNTIME },
        { object: 'Math', property: 'random', message: FROM_THE_RUNTIME },
      ],
      'no-restricted-syntax': ['error', NO_IMPORT_META, ...NO_CLOCKS_IN_SYNTAX],
    },
  },
  mustNotImport(['store', 'key'], NO_NEST),
  mustNotImport(
    ['node', 'quorum', 'scripts', 'wakeups'].map((folder) => `store/redis/${folder}`),
    NO_NEST,
    NO_IOREDIS,
  ),
  mustNotImport(['lease', 'queue', 'sections'], NO_REDIS),
  mustNotImport(['nest/methods', 'nest/handlers', 'nest/transports'], NO_REDIS),
  {
    // Tests look inside, send wrong values on purpose and read untyped responses.
    files: ['test/**/*.ts', 'sample/**/*.ts'],
    rules: {
      '@typescript-eslint/ban-ts-comment': ['error', { 'ts-expect-error': false }],
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/no-empty-function': 'off',
      '@typescript-eslint/no-explicit-any': 'off',
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/non-nullable-type-assertion-style': 'off',
      '@typescript-eslint/only-throw-error': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      '@typescript-eslint/unbound-method': 'off',
    },
  },
  {
    // Has packages of its own, which need not be installed here.
    files: ['bench/**/*.ts'],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { parserOptions: { projectService: false } },
  },
);
