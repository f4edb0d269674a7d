import { defineConfig } from 'vitest/config';

// `source` makes the `#lib` imports of package.json point at TypeScript instead of dist.
const conditions = ['source', 'module', 'node'];

export default defineConfig({
  resolve: { conditions },
  // The global setup runs in an environment of vitest's own, which takes its conditions from here alone.
  environments: { __vitest__: { resolve: { conditions } } },
  ssr: { resolve: { conditions, externalConditions: ['node', 'import', 'module-sync'] } },
  test: {
    include: ['apps/**/*.test.ts', 'libs/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    reporters: ['default', './scripts/plain-reporter.mjs'],
    // Files wait for processes more than they compute: three at a time on two cores (measured: see CONTRIBUTING).
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
