/** What an API key may be allowed to do; `admin` allows everything. */
export const SCOPES = [
  'events:read',
  'events:write',
  'endpoints:read',
  'endpoints:write',
  'deliveries:read',
  'deliveries:write',
  'consumers',
  'admin',
] as const;

/** One entry of an API key's list of permissions. */
export type Scope = (typeof SCOPES)[number];

/** Whether the text is a scope of ours. */
export function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text);
}
