import type { ErrorCode } from '#runtime';
import ts from 'typescript';
import { readShapes, type Sources } from './program.js';
import { exampleOf } from './examples.js';
import type { Schema } from './schema.js';
import type { SchemaContext } from './type-schema.js';
import { WORDS } from './words.js';

/** What describing an operation needs. */
export interface Kit {
  readonly sources: Sources;
  readonly context: SchemaContext;
  readonly bodies: ReadonlyMap<string, ts.Type>;
  readonly answers: ReadonlyMap<string, ts.Type>;
  /** The codes that some operation has. */
  readonly usedCodes: Set<ErrorCode>;
}

/** The names that clients see, where it is not that of the interface or of the view. */
const RENAMED: Readonly<Record<string, string>> = {
  ProblemBody: 'Problem',
  acceptedView: 'AcceptedEvent',
  markedView: 'BatchEvent',
  eventView: 'EventSummary',
};

/** Reads all that the sources say before the first operation. */
export function openKit(sources: Sources): Kit {
  return {
    sources,
    bodies: readShapes(sources, 'RequestBodies'),
    answers: readShapes(sources, 'Answers'),
    usedCodes: new Set(),
    context: {
      checker: sources.checker,
      names: readNames(sources),
      requestFields: readShapes(sources, 'RequestFields'),
      words: WORDS,
      usedWords: new Set(),
      components: new Map(),
      faults: [],
    },
  };
}

/** An example of a schema; a fault where there is none. */
export function exampleFor({ context }: Kit, schema: Schema, what: string): unknown {
  try {
    return exampleOf(schema, context.components);
  } catch (error) {
    context.faults.push(`${what}: ${(error as Error).message}`);
    return null;
  }
}

/** An interface goes by its name, what `deliveryView` gives by `Delivery`. */
function readNames({ checker, files }: Sources): Map<ts.Symbol, string> {
  const names = new Map<ts.Symbol, string>();
  for (const statement of files.flatMap(({ statements }) => statements)) {
    if (ts.isInterfaceDeclaration(statement)) {
      const symbol = checker.getSymbolAtLocation(statement.name);
      if (symbol !== undefined) names.set(symbol, RENAMED[statement.name.text] ?? statement.name.text);
    }
    if (!ts.isFunctionDeclaration(statement) || !statement.name?.text.endsWith('View')) continue;
    const signature = checker.getSignatureFromDeclaration(statement);
    const type = signature === undefined ? undefined : checker.getReturnTypeOfSignature(signature);
    const symbol: ts.Symbol | undefined = type?.symbol;
    if (symbol !== undefined) names.set(symbol, nameOfView(statement.name.text));
  }
  return names;
}

function nameOfView(view: string): string {
  const name = view.replace(/View$/, '');
  return RENAMED[view] ?? `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}
