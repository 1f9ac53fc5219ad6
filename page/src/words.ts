// The headline of the page: the state of the run, the worst query, and since when.
import { length, plural, when } from "./format";
import type { Link } from "./store";
import type { Alert, Level, State } from "./wire";

export interface Verdict {
  level: Level;
  /** A word for the state, shown next to its sign. */
  word: string;
  headline: string;
  detail: string;
  /** Other queries with problems, in words. */
  also?: string;
  since: number | null;
}

export const SIGNS: Record<Level, string> = { ok: "●", warn: "▲", bad: "✕", off: "■" };

const VERBS: Record<string, string> = {
  failed: "has failed",
  stalled: "is stalled",
  retrying: "is retrying",
  waiting: "is waiting for a source",
  slow: "is slower than its trigger",
  starting: "is starting",
  stopped: "has stopped",
  idle: "is idle",
  running: "is running",
};

export function verdict(state: State, now: number): Verdict {
  const { run, worst } = state;
  const since = worst?.since ? Date.parse(worst.since) : null;
  if (worst && (worst.level === "bad" || worst.level === "warn")) {
    const others = state.queries.filter((query) => query.name !== worst.query && query.level !== "ok" && query.level !== "off");
    return {
      level: worst.level,
      word: worst.state,
      headline: `${worst.query} ${VERBS[worst.state] ?? `is ${worst.state}`}`,
      detail: worst.why,
      also: others.length ? `also: ${others.map((query) => `${query.name} ${query.state}`).join(", ")}` : "",
      since,
    };
  }
  if (!run.live) {
    const well = run.exit_code === 0 || run.exit_code === null;
    return {
      level: well ? "off" : "bad",
      word: "ended",
      headline: well ? "The run has ended" : `The run ended with exit code ${run.exit_code}`,
      detail: `${plural(state.rows_in, "row")} read · lasted ${length((Date.parse(run.ended ?? "") || now) - Date.parse(run.started))}`,
      since: run.ended ? Date.parse(run.ended) : null,
    };
  }
  const firing = headlined(state);
  if (firing) {
    return {
      level: "warn",
      word: "alert",
      headline: `Alert: ${firing.name}`,
      detail: told(state.alerts.filter((alert) => alert.firing && alert.name === firing.name)),
      since: firing.since ? Date.parse(firing.since) : null,
    };
  }
  if (!worst) return { level: "off", word: "starting", headline: "The run is starting", detail: "Spark is starting; no query is running yet.", since: Date.parse(run.started) };
  return { level: state.level, word: state.state, ...well(state), since };
}

/** The alert that the headline shows; null while it shows something more serious. */
export function headlined(state: State): Alert | null {
  if (!state.run.live || state.worst?.level === "bad" || state.worst?.level === "warn") return null;
  return state.alerts.find((alert) => alert.firing) ?? null;
}

/** The text of one alert for each of its queries. */
export function told(alerts: Alert[]): string {
  return alerts.map((alert) => [alert.query, alert.text].filter(Boolean).join(": ")).join(" · ");
}

function well(state: State): { headline: string; detail: string } {
  const queries = state.queries;
  const total = plural(queries.length, "query", "queries");
  if (queries.every((query) => query.state === "stopped")) return { headline: "All queries have stopped", detail: total };
  if (queries.some((query) => query.state === "starting"))
    return { headline: "Starting", detail: `${queries.filter((query) => query.state === "starting").map((query) => query.name).join(", ")}: the first batch is running` };
  if (state.rows_in === 0)
    return { headline: "All is well, but no rows have arrived yet", detail: `${total} waiting for the first row: send data to a source, or check the addresses in the spec` };
  const parts = [total, state.behind ? `${plural(state.behind, "record")} ${state.behind === 1 ? "waits" : "wait"} to be read` : state.behind === 0 ? "all records are read" : ""];
  return { headline: "All is well", detail: parts.filter(Boolean).join(" · ") };
}

/** The message while the server cannot be reached. */
export function lostWords(link: Link, lost: number | null, now: number): string {
  if (link === "refused") return "This page requires a token: open the address that 'millstream run' printed.";
  const since = lost === null ? "" : ` since ${when(lost, now)}`;
  const why = link === "ended" ? "The run and its server have ended" : "No connection to the run";
  return `${why}${since}. The figures are from that time. The page reconnects automatically and then fills the gap.`;
}

/** The age of something in words. */
export function ago(ms: number | null, now: number): string {
  return ms === null ? "" : length(Math.max(0, now - ms));
}
