/** Ends a run with one plain, uncoloured line that any CI can read: `N passed, N failed, N skipped`. */
export default class PlainReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      let failedTests = 0;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        count[state] += 1;
        if (state === 'failed') failedTests += 1;
      }
      // A file that could not be loaded, or whose hooks failed, has no failed test of its own: it counts as one.
      if (module.state() === 'failed' && failedTests === 0) count.failed += 1;
    }
    process.stdout.write(
      `\n${count.passed} passed, ${count.failed} failed, ${count.skipped + count.pending} skipped\n`,
    );
  }
}
