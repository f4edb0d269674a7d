// Writes docs/reference/openapi.json from the api's code, and the page that shows it; with --check it only compares.
// Either way the document is linted first, offline.
import 'reflect-metadata';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { renderPage } from '../dist/apps/api/openapi/render-page.js';
import { writeDocument } from '../dist/apps/api/openapi/document.js';

const FOLDER = new URL('../docs/reference/', import.meta.url);

const RULES = {
  'component-name-unique': 'error',
  'operation-singular-tag': 'error',
  'operation-tag-defined': 'error',
  'parameter-description': 'error',
  'paths-kebab-case': 'error',
};

try {
  const document = await writeDocument();
  const files = {
    'openapi.json': `${JSON.stringify(document, null, 2)}\n`,
    'openapi.html': renderPage(document),
  };
  await lint(files['openapi.json']);
  if (process.argv.includes('--check')) await compare(files);
  else await write(files);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

async function lint(source) {
  const config = await createConfig({ extends: ['recommended-strict'], rules: RULES });
  const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config });
  if (problems.length === 0) return;
  const lines = problems.map(
    ({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0].pointer}`,
  );
  throw new Error(`The document is not in order:\n  - ${lines.join('\n  - ')}`);
}

async function write(files) {
  await mkdir(FOLDER, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    await writeFile(new URL(name, FOLDER), text);
    console.log(`docs/reference/${name} is written`);
  }
}

async function compare(files) {
  for (const [name, text] of Object.entries(files)) {
    const written = await readFile(new URL(name, FOLDER), 'utf8').catch(() => '');
    if (written !== text)
      throw new Error(`docs/reference/${name} is not what the code says. Run: npm run openapi`);
  }
}
