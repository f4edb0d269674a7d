#!/usr/bin/env node
import 'reflect-metadata';
import { createProgram } from './create-program.js';
import { isHelp, printFailure } from './output.js';
import { withEmbeddedDatabase } from './with-embedded-database.js';

const json = process.argv.includes('--json');
try {
  // A program reads standard error as JSON, too.
  const env = withEmbeddedDatabase(process.env, (line) => json || console.error(line));
  await createProgram(env, { json }).parseAsync();
} catch (error) {
  if (!isHelp(error)) {
    printFailure({ json }, error);
    process.exitCode = 1;
  }
}
