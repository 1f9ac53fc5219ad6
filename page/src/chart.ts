// Rows of a sink as lines over time: no set-up where there is a column of time and one of numbers.
import type { Values } from "./parts/plot";
import type { Rows } from "./wire";

// More lines than these cannot be told apart.
export const MOST_LINES = 6;

export interface Choice {
  values: string[];
  /** The column whose values become lines of their own; empty for none. */
  split: string;
}

export interface Chart {
  names: string[];
  data: [number[], ...Values[]];
}

const NUMBERS = /^(tinyint|smallint|int|bigint|float|double|decimal|long|integer)/;

/** The columns that hold numbers. */
export function numeric(rows: Rows): string[] {
  return rows.columns.filter((column) => NUMBERS.test(column.type) && column.name !== rows.time_column).map((column) => column.name);
}

/** The columns whose values may become lines: text with few values. */
export function splits(rows: Rows): string[] {
  return rows.columns
    .filter((column, at) => {
      if (column.name === rows.time_column || column.type !== "string") return false;
      const kinds = new Set(rows.rows.map((row) => row[at])).size;
      return kinds > 1 && kinds <= Math.max(MOST_LINES, rows.rows.length / 3);
    })
    .map((column) => column.name);
}

/** Lines over the column of time; rows of one moment are added up. Null where nothing can be drawn. */
export function chart(rows: Rows, choice: Choice): Chart | null {
  const at = (name: string): number => rows.columns.findIndex((column) => column.name === name);
  const timeAt = rows.time_column === null ? -1 : at(rows.time_column);
  const wanted = choice.values.filter((name) => at(name) >= 0).slice(0, choice.split ? 1 : MOST_LINES);
  if (timeAt < 0 || !wanted.length) return null;
  const splitAt = choice.split ? at(choice.split) : -1;
  const sums = new Map<string, Map<number, number>>();
  const totals = new Map<string, number>();
  for (const row of rows.rows) {
    const time = Date.parse(String(row[timeAt])) / 1000;
    if (Number.isNaN(time)) continue;
    for (const name of wanted) {
      const value = row[at(name)];
      const number = typeof value === "number" ? value : typeof value === "string" ? Number(value) : Number.NaN;
      if (Number.isNaN(number)) continue;
      const line = splitAt >= 0 ? String(row[splitAt]) : name;
      const points = sums.get(line) ?? new Map<number, number>();
      points.set(time, (points.get(time) ?? 0) + number);
      sums.set(line, points);
      totals.set(line, (totals.get(line) ?? 0) + Math.abs(number));
    }
  }
  const names = splitAt >= 0 ? [...sums.keys()].sort((a, b) => (totals.get(b) ?? 0) - (totals.get(a) ?? 0)).slice(0, MOST_LINES) : wanted.filter((name) => sums.has(name));
  const times = [...new Set(names.flatMap((name) => [...(sums.get(name)?.keys() ?? [])]))].sort((a, b) => a - b);
  if (!times.length) return null;
  return { names, data: [times, ...names.map((name) => times.map((time) => sums.get(name)?.get(time) ?? null))] };
}

export interface Windows {
  data: [number[], ...Values[]];
  /** Windows from this start on are not final. */
  open: number;
}

// More windows than these leave no room for a bar.
const MOST_WINDOWS = 30;

/** The windows of a chart, if its times are starts of windows of one length; null else. Times in seconds. */
export function windows(rows: Rows, drawn: Chart, final: number): Windows | null {
  const times = drawn.data[0];
  if (rows.time_column === null || times.length < 1 || !/window|start|bucket|minute|hour|day/i.test(rows.time_column)) return null;
  const length = span(rows) ?? Math.min(...times.slice(1).map((at, before) => at - (times[before] ?? at)));
  const first = times[0] ?? 0;
  if (!Number.isFinite(length) || length < 1 || times.some((at) => (at - first) % length !== 0)) return null;
  const last = times.at(-1) ?? 0;
  const many = Math.min(MOST_WINDOWS, Math.round((last - first) / length) + 1);
  // A window without rows has its place too.
  const starts = Array.from({ length: many }, (_, at) => last - (many - 1 - at) * length);
  const columns = drawn.data.slice(1) as Values[];
  return {
    data: [starts, ...columns.map((values) => starts.map((start) => values[times.indexOf(start)] ?? null))],
    open: final - length + 0.001,
  };
}

/** The length of a window by a column with its end, in seconds. */
function span(rows: Rows): number | null {
  const start = rows.columns.findIndex((column) => column.name === rows.time_column);
  const end = rows.columns.findIndex((column) => column.type === "timestamp" && /end/i.test(column.name));
  const row = rows.rows[0];
  if (end < 0 || end === start || !row) return null;
  const length = (Date.parse(String(row[end])) - Date.parse(String(row[start]))) / 1000;
  return length > 0 ? length : null;
}
