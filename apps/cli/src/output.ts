import { CommanderError, type Command } from 'commander';
import { AppError, isDatabaseUnavailable } from '#runtime';

/** The environment a command reads its settings from. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** How a command says what it did: lines for people, or one JSON document for programs. */
export interface Output {
  readonly json: boolean;
}

/** Prints a result: as JSON, or as the lines that are made of it. */
export function print<Result extends object>(
  output: Output,
  result: Result,
  lines: (result: Result) => readonly string[],
): void {
  console.log(output.json ? JSON.stringify(result) : lines(result).join('\n'));
}

/** Gives a command the option to print JSON. */
export function asJson(command: Command): Command {
  return command.option('--json', 'print JSON', false);
}

/** Says on standard error what went wrong. */
export function printFailure(output: Output, error: unknown): void {
  const { code, message } = describe(error);
  console.error(output.json ? JSON.stringify({ error: { code, message } }) : `waybill: ${message}`);
}

/** Whether this is how a help text, or the version, ends with `--json`. */
export function isHelp(error: unknown): boolean {
  return error instanceof CommanderError && error.exitCode === 0;
}

function describe(error: unknown): { code: string; message: string } {
  if (error instanceof AppError) return { code: error.code, message: error.message };
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof CommanderError)
    return { code: 'invalid_usage', message: message.replace(/^error: /, '') };
  if (isDatabaseUnavailable(error)) {
    return { code: 'database_unavailable', message: `The database cannot be reached: ${message}` };
  }
  return { code: 'internal_error', message };
}
