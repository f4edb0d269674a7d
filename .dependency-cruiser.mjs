// The arrows of the house: apps → libs → runtime → migrations. Nothing imports an app; nothing goes round.
const LIBS = ['runtime', 'signing', 'secrets', 'egress', 'tenants', 'endpoints', 'outbox'];

/** Which libs each lib may import. A lib that is not named here may import none of ours. */
const MAY_IMPORT = {
  runtime: [],
  signing: [],
  secrets: ['runtime'],
  egress: [],
  tenants: ['runtime'],
  endpoints: ['runtime', 'tenants', 'signing', 'secrets', 'egress'],
  outbox: ['runtime'],
};

const libRules = LIBS.map((lib) => ({
  name: `${lib}-imports-only-its-own-arrows`,
  severity: 'error',
  from: { path: `^libs/${lib}/` },
  to: {
    path: '^libs/',
    pathNot: [`^libs/${lib}/`, ...MAY_IMPORT[lib].map((other) => `^libs/${other}/index\\.ts$`)],
  },
}));

export default {
  forbidden: [
    { name: 'no-cycle', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'nothing-imports-an-app',
      severity: 'error',
      from: { path: '^(libs|migrations)/' },
      to: { path: '^apps/' },
    },
    {
      name: 'apps-do-not-import-each-other',
      severity: 'error',
      from: { path: '^apps/([^/]+)/' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'outside-a-lib-import-its-index',
      severity: 'error',
      from: { path: '^apps/' },
      to: { path: '^libs/', pathNot: '^libs/[^/]+/index\\.ts$' },
    },
    {
      name: 'only-runtime-knows-the-migrations',
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: '^libs/runtime/' },
      to: { path: '^migrations/' },
    },
    {
      name: 'migrations-import-nothing-of-ours',
      severity: 'error',
      from: { path: '^migrations/' },
      to: { path: '^(apps|libs)/' },
    },
    {
      name: 'the-api-runs-without-what-describes-it',
      severity: 'error',
      from: { path: '^apps/api/src/' },
      to: { path: '^apps/api/openapi/' },
    },
    {
      name: 'signing-needs-node-crypto-only',
      severity: 'error',
      from: { path: '^libs/signing/', pathNot: '\\.test\\.ts$' },
      to: { pathNot: ['^libs/signing/', '^(node:)?crypto$'] },
    },
    {
      name: 'nothing-shipped-imports-tests',
      severity: 'error',
      from: { path: '^(apps|libs|migrations)/', pathNot: '\\.test\\.ts$' },
      to: { path: '^(test|bench)/' },
    },
    {
      name: 'secrets-never-load-typeorm',
      severity: 'error',
      from: { path: '^libs/secrets/' },
      to: { path: 'node_modules/typeorm' },
    },
    ...libRules,
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      conditionNames: ['source', 'import', 'node', 'default'],
      exportsFields: ['exports'],
    },
  },
};
