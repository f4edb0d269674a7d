import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** The sources of the api with their types. */
export interface Sources {
  readonly checker: ts.TypeChecker;
  /** Our own files, without tests. */
  readonly files: readonly ts.SourceFile[];
  readonly root: string;
}

/** Reads the api's sources as the compiler sees them; takes a few seconds. */
export function readSources(): Sources {
  const root = findRoot();
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path));
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const entries = [
    join(root, 'apps/api/src/main.ts'),
    join(root, 'apps/api/src/publish/publish-operations.ts'),
    join(root, 'apps/api/openapi/shapes.ts'),
  ];
  const program = ts.createProgram(entries, { ...options, noEmit: true, incremental: false });
  const files = program
    .getSourceFiles()
    .filter(({ fileName, isDeclarationFile }) => !isDeclarationFile && isOurs(root, fileName));
  return { checker: program.getTypeChecker(), files, root };
}

/** The class, interface or function of this name in the api; throws when there is none, or more than one. */
export function findDeclaration<Kind extends ts.DeclarationStatement>(
  { files }: Sources,
  name: string,
  is: (node: ts.Node) => node is Kind,
): Kind {
  const found = files.flatMap((file) =>
    file.statements.filter(is).filter((statement) => statement.name?.getText(file) === name),
  );
  if (found.length !== 1) throw new Error(`${found.length} declarations are named ${name}; one is needed`);
  return found[0]!;
}

/** The method of a controller. */
export function findMethod(sources: Sources, className: string, methodName: string): ts.MethodDeclaration {
  const declaration = findDeclaration(sources, className, ts.isClassDeclaration);
  const method = declaration.members.find(
    (member): member is ts.MethodDeclaration =>
      ts.isMethodDeclaration(member) && member.name.getText() === methodName,
  );
  if (method === undefined) throw new Error(`${className} has no method ${methodName}`);
  return method;
}

/** The property types of one of the interfaces in shapes.ts, by name. */
export function readShapes(sources: Sources, name: string): ReadonlyMap<string, ts.Type> {
  const { checker } = sources;
  const type = checker.getTypeAtLocation(findDeclaration(sources, name, ts.isInterfaceDeclaration));
  return new Map(
    checker.getPropertiesOfType(type).map((property) => [property.name, checker.getTypeOfSymbol(property)]),
  );
}

function isOurs(root: string, fileName: string): boolean {
  return ['apps/', 'libs/'].some((folder) => fileName.startsWith(join(root, folder)));
}

function findRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
}
