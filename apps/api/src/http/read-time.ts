const RFC_3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(?:[Zz]|[+-](\d{2}):(\d{2}))$/;

/**
 * A time by RFC 3339 from 1970 on, or null. Stricter than Date.parse, which takes 30 February, local times and much
 * else.
 */
export function readTime(text: string): Date | null {
  const match = RFC_3339.exec(text);
  if (match === null) return null;
  const [year, month, day, hour, minute, second, offsetHour, offsetMinute] = match
    .slice(1)
    .map((part) => Number(part ?? 0));
  if (hour! > 23 || minute! > 59 || second! > 59 || offsetHour! > 23 || offsetMinute! > 59) return null;
  const date = new Date(Date.UTC(year!, month! - 1, day));
  if (date.getUTCMonth() !== month! - 1 || date.getUTCDate() !== day) return null;
  const time = new Date(text.toUpperCase());
  return time.getTime() >= 0 ? time : null;
}
