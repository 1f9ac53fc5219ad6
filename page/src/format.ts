// Figures as words: short, of steady width, with their unit.

const NONE = "–";
const THIN = "\u202f";

/** A count with at most three figures that matter: 950, 12.3 k, 4.56 M. */
export function count(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size < 1000) return Number.isInteger(value) ? String(value) : value.toFixed(size < 10 ? 1 : 0);
  for (const [unit, scale] of [["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]] as const) {
    const scaled = value / scale;
    if (Math.abs(scaled) < 999.5) {
      const digits = Math.abs(scaled) < 9.995 ? 2 : Math.abs(scaled) < 99.95 ? 1 : 0;
      return `${scaled.toFixed(digits)}${THIN}${unit}`;
    }
  }
  return value.toExponential(2);
}

// Made once: `toLocaleString` makes one for each number.
const GROUPS = new Intl.NumberFormat("en-GB");

/** Every figure of a count, in groups of three. */
export function exact(value: number | null | undefined): string {
  return value == null ? NONE : GROUPS.format(value);
}

/** Rows a second. */
export function rate(value: number | null | undefined): string {
  return value == null ? NONE : `${count(value < 10 ? Math.round(value * 10) / 10 : Math.round(value))}/s`;
}

/** Bytes, in powers of 1024. */
export function bytes(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return NONE;
  let scaled = value;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (Math.abs(scaled) < 1000) return `${unit === "B" || scaled >= 99.95 ? Math.round(scaled) : scaled.toFixed(1)}${THIN}${unit}`;
    scaled /= 1024;
  }
  return `${scaled.toFixed(1)}${THIN}TiB`;
}

/** A length of time given in milliseconds: 340 ms, 4.2 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
export function length(ms: number | null | undefined): string {
  if (ms == null || !Number.isFinite(ms)) return NONE;
  if (ms < 0) return `−${length(-ms)}`;
  if (ms < 1000) return `${Math.round(ms)}${THIN}ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)}${THIN}s`;
  if (seconds < 59.5) return `${Math.round(seconds)}${THIN}s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return pair(Math.floor(whole / 60), "min", whole % 60, "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return pair(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(seconds / 3600);
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

function pair(great: number, unit: string, small: number, part: string): string {
  return small ? `${great}${THIN}${unit} ${small}${THIN}${part}` : `${great}${THIN}${unit}`;
}

/** Milliseconds since 1970 of an ISO time; null when there is none, or none that can be read. */
export function moment(text: string | null | undefined): number | null {
  if (!text) return null;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? null : ms;
}

const two = (value: number): string => String(value).padStart(2, "0");

/** The clock of this machine, to the second. */
export function clock(ms: number | null | undefined): string {
  if (ms == null) return NONE;
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Hours and minutes of a time in seconds, with its seconds where it has some. */
export function hourOf(at: number): string {
  return at % 60 ? clock(at * 1000) : clock(at * 1000).slice(0, 5);
}

/** Date and clock, the date left out for today. */
export function when(ms: number | null | undefined, today: number): string {
  if (ms == null) return NONE;
  const date = new Date(ms);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return new Date(today).toDateString() === date.toDateString() ? clock(ms) : `${day} ${clock(ms)}`;
}

/** A share as a percentage without a fraction. */
export function percent(part: number | null | undefined): string {
  return part == null || !Number.isFinite(part) ? NONE : `${Math.round(part * 100)}${THIN}%`;
}

/** One thing or many: plural(2, "query", "queries") is "2 queries". */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${exact(number)} ${number === 1 ? one : many}`;
}

/** A message of the run as a sentence: its first letter large. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A value of a row as text. Never markup: it goes into text nodes only. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "number" || typeof value === "string") return String(value);
  return JSON.stringify(value);
}
