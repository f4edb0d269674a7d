import type { IdKind } from '#runtime';
import ts from 'typescript';
import { SILENT_HEADERS } from './headers.js';
import { findDeclaration, findMethod, type Sources } from './program.js';
import type { Route } from './routes.js';

/** The function or method that answers a route. */
export function handlerOf(sources: Sources, { handler }: Route): ts.FunctionLikeDeclaration {
  return handler.className === null
    ? findDeclaration(sources, handler.name, ts.isFunctionDeclaration)
    : findMethod(sources, handler.className, handler.name);
}

/** The type of what a handler answers, once it is awaited. */
export function answerTypeOf({ checker }: Sources, handler: ts.FunctionLikeDeclaration): ts.Type {
  const signature = checker.getSignatureFromDeclaration(handler)!;
  const answered = checker.getReturnTypeOfSignature(signature);
  return checker.getAwaitedType(answered) ?? answered;
}

/** Whose id stands in the path under a name: `parseId('endpoint', id)` says it. */
export function idKindOf(handler: ts.FunctionLikeDeclaration, pathName: string): IdKind | undefined {
  const local = localName(handler, pathName);
  return callsIn(handler, 'parseId').flatMap(({ arguments: [kind, text] }) =>
    kind !== undefined && ts.isStringLiteral(kind) && text?.getText() === local ? [kind.text as IdKind] : [],
  )[0];
}

/** Whether a path's name takes a consumer, by its uid or its id: `readConsumerReference(id)` says it. */
export function namesConsumer(handler: ts.FunctionLikeDeclaration, pathName: string): boolean {
  const local = localName(handler, pathName);
  return callsIn(handler, 'readConsumerReference').some(({ arguments: [text] }) => text?.getText() === local);
}

/** The headers that a handler puts on its answer, itself or by a function beside it, in lower case. */
export function headersSet(handler: ts.FunctionLikeDeclaration): string[] {
  const beside = handler
    .getSourceFile()
    .statements.filter(ts.isFunctionDeclaration)
    .filter((each) => each.name !== undefined && callsIn(handler, each.name.text).length > 0);
  const names = [handler, ...beside].flatMap((each) =>
    callsIn(each, 'setHeader').flatMap(({ arguments: [name] }) =>
      name !== undefined && ts.isStringLiteral(name) ? [name.text.toLowerCase()] : [],
    ),
  );
  return [...new Set(names)].filter((name) => !SILENT_HEADERS.has(name));
}

/** What a handler calls a name of its path. */
function localName(handler: ts.FunctionLikeDeclaration, pathName: string): string | undefined {
  return handler.parameters.find((each) => decoratorArgument(each) === pathName)?.name.getText();
}

function decoratorArgument(parameter: ts.ParameterDeclaration): string | undefined {
  const call = ts.getDecorators(parameter)?.[0]?.expression;
  const argument = call !== undefined && ts.isCallExpression(call) ? call.arguments[0] : undefined;
  return argument !== undefined && ts.isStringLiteral(argument) ? argument.text : undefined;
}

function callsIn(node: ts.Node, name: string): ts.CallExpression[] {
  const found: ts.CallExpression[] = [];
  const visit = (inner: ts.Node): void => {
    if (ts.isCallExpression(inner)) {
      const called = ts.isPropertyAccessExpression(inner.expression)
        ? inner.expression.name
        : inner.expression;
      if (called.getText() === name) found.push(inner);
    }
    ts.forEachChild(inner, visit);
  };
  visit(node);
  return found;
}
