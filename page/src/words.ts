// Signs and words that the page adds to those of the server.
import { length, when } from "./format";
import type { Link } from "./store";
import type { Alert, Level, Query } from "./wire";

export const SIGNS: Record<Level, string> = { ok: "●", start: "◐", warn: "▲", bad: "✕", off: "■" };

const WORDS: Record<string, string> = { falling_behind: "falling behind", watermark_stuck: "watermark stuck" };

/** The word for a state. */
export function word(state: string): string {
  return WORDS[state] ?? state;
}

/** The text of one alert for each of its queries. */
export function alertText(alerts: Alert[]): string {
  return alerts.map((alert) => [alert.query, alert.text].filter(Boolean).join(": ")).join(" · ");
}

/** The message while the server cannot be reached. */
export function lostWords(link: Link, lost: number | null, now: number): string {
  if (link === "refused") return "This page requires a token: open the address that 'millstream run' printed.";
  const time = lost === null ? "" : when(lost, now);
  const ended = `The run and its server ended${time && ` at ${time}`}`;
  const why = link === "ended" ? ended : `No connection to the run${time && ` since ${time}`}`;
  return `${why}. The figures are from that time. The page reconnects automatically and then fills the gap.`;
}

/** The age of something in words. */
export function ago(ms: number | null, now: number): string {
  return ms === null ? "" : length(Math.max(0, now - ms));
}

// The broker is asked every three seconds; after these, a figure of it is shown with its age.
const CURRENT = 8000;

/** How old a figure is, in words; nothing while it is current. */
export function age(at: number | null, now: number): string {
  return at !== null && now - at > CURRENT ? `${ago(at, now)} ago` : "";
}

/** When a backlog will be read, rounded up as the server rounds it; nothing without an estimate. */
export function caughtUp(seconds: number | null | undefined): string {
  if (seconds == null) return "";
  for (const [unit, size, step] of [["s", 1, 10], ["min", 60, 1]] as const) {
    const number = Math.ceil(seconds / size / step) * step;
    if (number < 90) return `caught up in about ${number} ${unit}`;
  }
  return `caught up in about ${Math.ceil(seconds / 3600)} h`;
}

/** The duration of the last batch, or of the running one where that is longer; `share` of the trigger. */
export function load(query: Query): { seconds: number | null; share: number | null; runs: boolean } {
  const running = query.running?.seconds ?? 0;
  const runs = running > (query.batch_seconds ?? 0) && query.trigger_seconds !== null;
  return runs ? { seconds: running, share: running / (query.trigger_seconds ?? 1), runs } : { seconds: query.batch_seconds, share: query.busy, runs };
}
