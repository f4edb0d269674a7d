import type { DatabaseRole } from '#runtime';
import { Client, type QueryResultRow } from 'pg';

/** A node of a plan as auto_explain prints it, with what it really did. */
export interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

/** A client that keeps the plan of the last statement it ran. */
export interface ExplainingClient {
  query<Row extends QueryResultRow>(statement: {
    name?: string;
    text: string;
    values?: unknown[];
  }): Promise<import('pg').QueryResult<Row>>;
  /** The nodes of the last plan, outermost first. */
  lastPlan(): readonly PlanNode[];
  end(): Promise<void>;
}

export interface ExplainingOptions {
  readonly plans?: 'force_generic_plan' | 'force_custom_plan';
  /** Under whose policies statements are planned and run; the owner's unless told. */
  readonly role?: DatabaseRole;
  /** Whose rows row-level security lets through, for the role that it binds. */
  readonly tenantId?: string;
}

/**
 * Connects with auto_explain loaded: every statement's real plan and counts come back as a notice. Plans are generic,
 * as the dispatcher's are, unless they are asked for by value, as the api's lists get them.
 */
export async function explainingClient(
  url: string,
  { plans = 'force_generic_plan', role, tenantId }: ExplainingOptions = {},
): Promise<ExplainingClient> {
  const client = new Client({ connectionString: url, application_name: 'waybill-test-explain' });
  await client.connect();
  let last: PlanNode | null = null;
  client.on('notice', (notice) => {
    const json = /plan:\s*(\{[\s\S]*)$/.exec(notice.message ?? '')?.[1];
    if (json !== undefined) last = (JSON.parse(json) as { Plan: PlanNode }).Plan;
  });
  for (const setting of [
    `load 'auto_explain'`,
    'set auto_explain.log_min_duration = 0',
    'set auto_explain.log_analyze = on',
    'set auto_explain.log_buffers = on',
    `set auto_explain.log_format = 'json'`,
    'set client_min_messages = log',
    `set plan_cache_mode = ${plans}`,
    ...(plans === 'force_generic_plan' ? ['set enable_sort = off'] : []),
    ...(tenantId === undefined ? [] : [`set waybill.tenant = '${tenantId}'`]),
    ...(role === undefined ? [] : [`set role ${role}`]),
  ]) {
    await client.query(setting);
  }
  return {
    query: (statement) => {
      last = null;
      return client.query(statement);
    },
    lastPlan: () => (last === null ? [] : flatten(last)),
    end: () => client.end(),
  };
}

function flatten(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)];
}
