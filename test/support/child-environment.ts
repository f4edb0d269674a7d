/** Environment variables by name; undefined takes a variable away. */
export type Environment = Readonly<Record<string, string | undefined>>;

// What would turn a child into something else than it is in production, or point it at another database.
const NOT_INHERITED = /^(WAYBILL_|DATABASE_URL$|PG[A-Z]+$|VITEST|NODE_ENV$|NODE_OPTIONS$)/;

/** The environment of a child process: the caller's without its settings, then `env` over it. */
export function childEnvironment(env: Environment): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !NOT_INHERITED.test(name));
  const set = Object.entries(env).filter(([, value]) => value !== undefined);
  const removed = new Set(Object.keys(env).filter((name) => env[name] === undefined));
  return Object.fromEntries([...inherited.filter(([name]) => !removed.has(name)), ...set]);
}
