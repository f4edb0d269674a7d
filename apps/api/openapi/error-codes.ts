import { ERRORS, type ErrorCode } from '#runtime';
import ts from 'typescript';
import type { Sources } from './program.js';

const CODE_COUNT = Object.keys(ERRORS).length;

/**
 * Every code that a function can throw, as far as its code and that of the functions it names says so: wherever an
 * ErrorCode is taken, the literals that can come in. What is called through an interface is not followed.
 */
export function codesOf(sources: Sources, roots: readonly ts.Node[]): ReadonlySet<ErrorCode> {
  const codes = new Set<ErrorCode>();
  const seen = new Set<ts.Node>();
  const open = [...roots];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    walk(node, (inner) => {
      for (const code of codesTaken(sources.checker, inner)) codes.add(code);
      const named = ts.isIdentifier(inner) ? functionOf(sources, inner) : undefined;
      if (named !== undefined) open.push(named);
    });
  }
  return codes;
}

function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  // Types and decorators are no code that a request runs.
  if (ts.isTypeNode(node) || ts.isDecorator(node)) return;
  visit(node);
  ts.forEachChild(node, (child) => walk(child, visit));
}

function codesTaken(checker: ts.TypeChecker, node: ts.Node): ErrorCode[] {
  if (!ts.isCallExpression(node) && !ts.isNewExpression(node)) return [];
  const parameters = checker.getResolvedSignature(node)?.parameters ?? [];
  return (node.arguments ?? []).flatMap((argument, index) => {
    const parameter = parameters[index];
    if (parameter === undefined) return [];
    const taken = literalsOf(checker.getTypeOfSymbolAtLocation(parameter, node));
    const given = literalsOf(checker.getTypeAtLocation(argument));
    // Whoever hands on any code there is was given it by somebody else, who is asked instead.
    return taken.length === CODE_COUNT && given.length < CODE_COUNT ? given : [];
  });
}

function literalsOf(type: ts.Type): ErrorCode[] {
  const types = type.isUnion() ? type.types : [type];
  return types.flatMap((each) =>
    each.isStringLiteral() && each.value in ERRORS ? [each.value as ErrorCode] : [],
  );
}

/** The declaration of ours that a name stands for, when that is a function or holds one. */
function functionOf({ checker, files }: Sources, name: ts.Identifier): ts.Node | undefined {
  const symbol = checker.getSymbolAtLocation(name);
  if (symbol === undefined) return undefined;
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const declaration = target.valueDeclaration;
  if (declaration === undefined || !files.includes(declaration.getSourceFile())) return undefined;
  if (ts.isFunctionDeclaration(declaration) || ts.isMethodDeclaration(declaration)) return declaration;
  const holdsFunction =
    ts.isVariableDeclaration(declaration) &&
    declaration.initializer !== undefined &&
    (ts.isArrowFunction(declaration.initializer) || ts.isFunctionExpression(declaration.initializer));
  return holdsFunction ? declaration : undefined;
}
