import type { Queryable, Statement } from '#runtime';

/** One statement as the product sent it. */
export interface RecordedStatement {
  /** The file of libs/outbox that sent it, without folder and ending: `claim-deliveries`. */
  readonly file: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Passes statements on to `db` and notes down each one with the file of libs/outbox that sent it. */
export function recordStatements(db: Queryable): {
  readonly db: Queryable;
  readonly statements: readonly RecordedStatement[];
} {
  const statements: RecordedStatement[] = [];
  return {
    statements,
    db: {
      query<Row extends Record<string, unknown>>(statement: Statement) {
        const file = /libs\/outbox\/([\w-]+)\.ts/.exec(new Error('where').stack ?? '')?.[1];
        if (file === undefined) throw new Error(`a statement from outside libs/outbox: ${statement.text}`);
        statements.push({ file, text: statement.text, values: statement.values ?? [] });
        return db.query<Row>(statement);
      },
    },
  };
}
