import { countPartitionDays } from '#outbox';
import { assertSchemaRevision, type Queryable } from '#runtime';

/** Fewer days of partitions than this is a warning; none is the end of accepting. */
export const PARTITION_DAYS_WARN = 7;

/** What the database can say about being ready. */
export interface Readiness {
  readonly database: boolean;
  readonly schema: boolean;
  /** Days for which the partitions stand, today included; null when it could not be asked. */
  readonly partitionDays: number | null;
}

/** Asks the database for at most `timeoutMs`; silence counts as no. Never throws. */
export async function checkReadiness(db: Queryable, timeoutMs: number): Promise<Readiness> {
  const down: Readiness = { database: false, schema: false, partitionDays: null };
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<Readiness>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, down);
  });
  try {
    return await Promise.race([ask(db).catch(() => down), timeout]);
  } finally {
    clearTimeout(timer);
  }
}

async function ask(db: Queryable): Promise<Readiness> {
  await db.query({ text: 'select 1' });
  try {
    await assertSchemaRevision(db);
  } catch {
    return { database: true, schema: false, partitionDays: null };
  }
  return { database: true, schema: true, partitionDays: await countPartitionDays(db) };
}
