#!/usr/bin/env node
import 'reflect-metadata';
import { createProgram } from './create-program.js';
import { printFailure } from './output.js';

try {
  await createProgram(process.env).parseAsync();
} catch (error) {
  printFailure({ json: process.argv.includes('--json') }, error);
  process.exitCode = 1;
}
