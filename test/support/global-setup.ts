import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { migrate, startEmbeddedPostgres } from '#runtime';
import { Client } from 'pg';
import type { TestProject } from 'vitest/node';

import { databaseUrl, TEMPLATE_DATABASE } from './database-names.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Leads to a database other than the template, as a role that may create databases. */
    adminUrl: string;
  }
}

// Every test file has a database, pools and often two apps of its own: the default of 100 connections is too few.
const MAX_CONNECTIONS = 300;

/** Starts one PostgreSQL for the whole run, or takes the one that is named, and makes the migrated template in it. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const server = await takeServer(process.env['WAYBILL_TEST_DATABASE_URL']);
  try {
    await makeTemplate(server.adminUrl);
  } catch (error) {
    await server.stop();
    throw error;
  }
  project.provide('adminUrl', server.adminUrl);
  return async () => {
    await dropTemplate(server.adminUrl);
    await server.stop();
  };
}

interface TestServer {
  readonly adminUrl: string;
  stop(): Promise<void>;
}

async function takeServer(givenUrl: string | undefined): Promise<TestServer> {
  if (givenUrl !== undefined && givenUrl !== '') return { adminUrl: givenUrl, stop: async () => undefined };
  const folder = mkdtempSync(join(tmpdir(), 'waybill-test-'));
  // Under root the server runs as another account, which has to pass through here.
  chmodSync(folder, 0o755);
  const server = await startEmbeddedPostgres({
    dataDir: join(folder, 'postgres'),
    durable: false,
    settings: { max_connections: String(MAX_CONNECTIONS) },
  });
  return {
    adminUrl: server.url,
    stop: async () => {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function makeTemplate(adminUrl: string): Promise<void> {
  await dropTemplate(adminUrl);
  await runAsAdmin(adminUrl, `create database ${TEMPLATE_DATABASE}`);
  await migrate(databaseUrl(adminUrl, TEMPLATE_DATABASE));
  // A template that someone is connected to cannot be copied.
  await runAsAdmin(adminUrl, `alter database ${TEMPLATE_DATABASE} allow_connections false`);
}

function dropTemplate(adminUrl: string): Promise<void> {
  return runAsAdmin(adminUrl, `drop database if exists ${TEMPLATE_DATABASE} with (force)`);
}

async function runAsAdmin(adminUrl: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
