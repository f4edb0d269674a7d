import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';

import ts from 'typescript';

/** A stretch of SQL between two `${…}` of a source text. */
export interface SqlPiece {
  /** The file without folder and ending. */
  readonly file: string;
  readonly text: string;
}

const SQL = /\bwaybill\.\w|^\s*(select|insert|update|delete|with|notify|listen)\s/;

/**
 * Every piece of SQL that the sources of a folder hold, tests left out. What was sent must hold them all: a statement
 * nobody thought of has a piece that is missing.
 */
export function sqlPiecesIn(folder: URL): SqlPiece[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .flatMap((name) => {
      const source = readFileSync(new URL(name, folder), 'utf8');
      const file = basename(name, '.ts');
      return literalsOf(ts.createSourceFile(name, source, ts.ScriptTarget.Latest))
        .filter((chunks) => chunks.some((chunk) => SQL.test(chunk)))
        .flatMap((chunks) => chunks.filter((chunk) => /\w/.test(chunk)).map((text) => ({ file, text })));
    });
}

/** The chunks of each string and template below a node, as the program sees them. */
function literalsOf(node: ts.Node): string[][] {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return [];
  const nested: string[][] = [];
  node.forEachChild((child) => void nested.push(...literalsOf(child)));
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return [[node.text], ...nested];
  if (!ts.isTemplateExpression(node)) return nested;
  return [[node.head.text, ...node.templateSpans.map((span) => span.literal.text)], ...nested];
}
