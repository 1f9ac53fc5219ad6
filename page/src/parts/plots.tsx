// Four plots of the chosen query on one axis of time.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { bytes, clock, count, length, rate } from "../format";
import { steady } from "../hooks";
import type { TermName } from "../terms";
import type { Maybe, Query, Series } from "../wire";
import { Empty, Panel } from "./panel";
import { type Line, Plot, type Values } from "./plot";
import { PartsBar } from "./sign";
import { Term } from "./term";

export const SPANS: [number, string][] = [
  [5, "5 min"],
  [15, "15 min"],
  [60, "1 h"],
  [360, "6 h"],
];

// A plot is some 550 pixels wide; more points than these make it slower, not finer.
const MOST_DRAWN = 600;

const PHASES: [TermName, string][] = [
  ["addBatch", "--p1"],
  ["queryPlanning", "--p2"],
  ["latestOffset", "--p3"],
  ["walCommit", "--p4"],
  ["commitOffsets", "--p5"],
  ["other", "--p6"],
];

interface Props {
  query: Query | undefined;
  series: Series | null;
  now: number;
  started: number;
  span: number;
  theme: string;
  onSpan: (minutes: number) => void;
}

interface Shown {
  id: string;
  title: string;
  lines: (Line & { of: TermName; word: string })[];
  data: [number[], ...Values[]];
  /** The lines in the order in which their names stand. */
  order: number[];
  write: (value: number) => string;
  /** How the value at a batch is written beside the line's name. */
  tell: (line: number, at: number) => string;
  grounded: boolean;
  /** The batch of each point: lines have points where nothing is, and a bar has two. */
  batches: number[];
}

export const PlotsPanel = steady(function PlotsPanel({ query, series: whole, now, started, span, theme, onSpan }: Props): JSX.Element {
  const [point, setPoint] = useState<number | null>(null);
  const end = now / 1000;
  // The series grows in place; the clock says when to look again.
  const series = useMemo(() => whole && thin(whole, end - span * 60), [whole, now, span]);
  const plots = useMemo(() => (series && series.time.length ? shown(series) : []), [series]);
  const starts = useMemo(() => (whole?.runs ?? []).map((run) => run.from), [whole]);
  const earliest = Math.min(whole?.time[0] ?? started / 1000, started / 1000);
  const range: [number, number] = [Math.max(end - span * 60, Math.min(earliest, end - 60)), end];
  const at = point ?? (series ? series.time.length - 1 : 0);
  return (
    <Panel
      id="plots"
      title={query ? `${query.name} over time` : "Over time"}
      aside={
        <>
          <span class="dim plot-when">{point !== null && series?.time[point] ? clock(series.time[point] * 1000) : "latest batch"}</span>
          <span class="group" role="group" aria-label="Time range">
            {SPANS.map(([minutes, word]) => (
              <button key={minutes} type="button" class="button small" aria-pressed={span === minutes} onClick={() => onSpan(minutes)}>
                {word}
              </button>
            ))}
          </span>
        </>
      }
    >
      {query && query.parts.length > 0 && <Parts query={query} />}
      {plots.length === 0 ? (
        <Empty>{query ? "No batch has been committed yet; the first one adds the first point." : "Select a query."}</Empty>
      ) : (
        plots.map((plot, row) => (
          <figure key={plot.id} class="plot-row" data-plot={plot.id} data-pieces={1 + plot.batches.filter((at) => at < 0).length}>
            <figcaption>
              <h3>{plot.title}</h3>
              <ul class="keys">
                {plot.order.map((index) => [plot.lines[index], index] as const).map(([line, index]) => line && (
                  <li key={line.of}>
                    <span class={`swatch ${line.dashed ? "dashed" : ""}`} style={{ "--swatch": `var(${line.colour})` }} aria-hidden="true" />
                    <Term of={line.of}>{line.word}</Term>
                    <span class="key-value">{plot.tell(index, at)}</span>
                  </li>
                ))}
              </ul>
            </figcaption>
            <Plot
              name={`${plot.title} of ${query?.name ?? ""}: ${plot.lines.map((line, index) => `${line.word} ${plot.tell(index, at)}`).join(", ")}`}
              lines={plot.lines}
              data={plot.data}
              range={range}
              height={row === plots.length - 1 ? 134 : 110}
              write={plot.write}
              timed={row === plots.length - 1}
              grounded={plot.grounded}
              clocks={plot.id === "times"}
              marks={starts}
              theme={theme}
              sync="time"
              onPoint={(index) => setPoint(index === null ? null : (plot.batches[index] ?? null))}
            />
          </figure>
        ))
      )}
    </Panel>
  );
});

/** The points from a time on, and the one before it. Of many that follow each other the batch that took longest stays. */
function thin(series: Series, since: number): Series {
  const { time, batch, phases } = series;
  let first = time.findIndex((at) => at >= since);
  if (first < 0) first = time.length;
  first = Math.max(0, first - 1);
  // A power of two, and groups by the number of the batch: they stay the same while points come and go.
  const size = 2 ** Math.max(0, Math.ceil(Math.log2((time.length - first) / MOST_DRAWN)));
  const parts = Object.values(phases);
  const took = (at: number): number => parts.reduce((sum, values) => sum + (values[at] ?? 0), 0);
  const kept: number[] = [];
  let group = -1;
  for (let at = first; at < time.length; at++) {
    const next = Math.floor((batch[at] ?? at) / size);
    const last = kept.at(-1);
    if (last === undefined || next !== group) kept.push(at);
    else if (took(at) > took(last)) kept[kept.length - 1] = at;
    group = next;
  }
  // The latest batch is always there: its figures stand beside the names.
  if (kept.length && kept.at(-1) !== time.length - 1) kept.push(time.length - 1);
  const pick = <T,>(values: T[]): T[] => kept.map((at) => values[at] as T);
  return {
    ...series,
    time: pick(time),
    batch: pick(batch),
    input_rate: pick(series.input_rate),
    processed_rate: pick(series.processed_rate),
    newest: pick(series.newest),
    watermark: pick(series.watermark),
    state_rows: pick(series.state_rows),
    state_bytes: pick(series.state_bytes),
    phases: Object.fromEntries(Object.entries(phases).map(([name, values]) => [name, pick(values)])),
  };
}

// A line that has no point for so many triggers is broken: nothing is known of the time between.
const GAP_TRIGGERS = 3;
// The same in seconds, where the trigger is short or unknown: Spark says nothing of an idle query's batches.
const GAP = 30;

interface Broken {
  time: number[];
  batches: number[];
  /** The values of a column at these times, with nothing in the gaps. */
  of: (column: Maybe<number>[]) => Values;
}

/** Times with a hole wherever points are too far apart, or of two runs. */
function broken(series: Series): Broken {
  const { time, batch } = series;
  const trigger = series.trigger_seconds ?? 0;
  const starts = series.runs?.map((run) => run.from) ?? [];
  const took = (at: number): number => Object.values(series.phases).reduce((sum, values) => sum + (values[at] ?? 0), 0);
  const out: Broken = { time: [], batches: [], of: (column) => out.batches.map((at) => (at < 0 ? null : (column[at] ?? null))) };
  time.forEach((at, index) => {
    const before = time[index - 1];
    // Points of a long history are left out, and each of their batches took a trigger, or as long as this one.
    const passed = Math.max(1, (batch[index] ?? 0) - (batch[index - 1] ?? 0));
    const most = Math.max(GAP, GAP_TRIGGERS * (trigger || took(index)) * passed);
    const apart = before !== undefined && (at - took(index) - before > most || starts.some((start) => start > before && start <= at));
    if (apart) {
      out.time.push((before + at) / 2);
      out.batches.push(-1);
    }
    out.time.push(at);
    out.batches.push(index);
  });
  return out;
}

function shown(series: Series): Shown[] {
  const lines = broken(series);
  return [rates(series, lines), durations(series), times(series, lines), states(series, lines)];
}

function rates(series: Series, lines: Broken): Shown {
  const columns = [series.input_rate, series.processed_rate];
  return {
    id: "rates",
    title: "Rows per second",
    lines: [
      { of: "rows_in", word: "input", colour: "--s1" },
      { of: "processed", word: "processed", colour: "--s2" },
    ],
    data: [lines.time, ...columns.map(lines.of)],
    batches: lines.batches,
    order: [0, 1],
    write: count,
    tell: (line, at) => rate(columns[line]?.[at]),
    grounded: true,
  };
}

/** Each batch is a bar from its start to its end. */
function durations(series: Series): Shown {
  const phases = PHASES.filter(([name]) => series.phases[name]);
  // getBatch takes no time worth a colour of its own; the sum of all phases is the batch's duration.
  const merged = phases.map(([name]) =>
    series.time.map((_, at) => (series.phases[name]?.[at] ?? 0) + (name === "other" ? (series.phases["getBatch"]?.[at] ?? 0) : 0)),
  );
  const sums: number[][] = [];
  for (const [index, values] of merged.entries()) sums.push(values.map((value, at) => value + (sums[index - 1]?.[at] ?? 0)));
  const whole = sums.at(-1) ?? [];
  const time: number[] = [];
  const batches: number[] = [];
  const edges: boolean[] = [];
  series.time.forEach((end, at) => {
    const before = time.at(-1) ?? -Infinity;
    // Batches of one query follow each other; reports of them may be a little late.
    const begin = Math.max(before + 0.001, end - Math.max(whole[at] ?? 0, 0.02));
    if (end <= begin) return;
    for (const [moment, edge] of [[begin, false], [end, false], [end + 0.0005, true]] as const) {
      time.push(moment);
      batches.push(at);
      edges.push(edge);
    }
  });
  const trigger = series.trigger_seconds;
  // The greatest sum is painted first, each smaller one over it.
  const layers = phases.map(([name, colour], index) => ({ name, colour, index })).reverse();
  const lines: Shown["lines"] = layers.map(({ name, colour }) => ({ of: name, word: name, colour, filled: true }));
  const data: [number[], ...Values[]] = [time, ...layers.map(({ index }) => batches.map((at, point) => (edges[point] ? null : (sums[index]?.[at] ?? null))))];
  if (trigger) {
    lines.push({ of: "trigger", word: "trigger", colour: "--text", dashed: true });
    data.push(time.map(() => trigger));
  }
  return {
    id: "durations",
    title: "Batch duration",
    lines,
    data,
    batches,
    order: [...layers.map((_, at) => layers.length - 1 - at), ...(trigger ? [layers.length] : [])],
    write: (value) => length(value * 1000),
    tell: (line, at) => {
      const layer = layers[line];
      const seconds = layer ? merged[layer.index]?.[at] : trigger;
      return length(seconds == null ? null : seconds * 1000);
    },
    grounded: true,
  };
}

function times(series: Series, lines: Broken): Shown {
  const { time } = series;
  const columns = [time, series.newest, series.watermark];
  return {
    id: "times",
    title: "Event time",
    lines: [
      { of: "clock", word: "clock", colour: "--s6", dashed: true },
      { of: "newest", word: "newest event", colour: "--s1" },
      { of: "watermark", word: "watermark", colour: "--s2" },
    ],
    data: [lines.time, ...columns.map(lines.of)],
    batches: lines.batches,
    order: [0, 1, 2],
    write: (value) => clock(value * 1000),
    tell: (line, at) => {
      const value = columns[line]?.[at];
      const then = time[at];
      if (value == null || then === undefined) return "–";
      return line === 0 ? clock(value * 1000) : `${length((then - value) * 1000)} behind`;
    },
    grounded: false,
  };
}

function states(series: Series, lines: Broken): Shown {
  return {
    id: "states",
    title: "State",
    lines: [{ of: "state_rows", word: "rows", colour: "--s3" }],
    data: [lines.time, lines.of(series.state_rows)],
    batches: lines.batches,
    order: [0],
    write: count,
    tell: (_, at) => `${count(series.state_rows[at])} rows · ${bytes(series.state_bytes[at])}`,
    grounded: true,
  };
}

/** Where the time of the last batch went: source, planning, each sink, checkpoint; and the state store's part in it. */
function Parts({ query }: { query: Query }): JSX.Element {
  const parts = query.parts.filter((part) => part.kind !== "state");
  const state = query.parts.find((part) => part.kind === "state");
  const first = parts.findIndex((part) => part.kind === "sink");
  return (
    <div class="split">
      <h3><Term of="parts">Time of the last batch</Term></h3>
      <PartsBar parts={query.parts} whole={0} />
      <ul class="keys">
        {parts.map((part, at) => (
          <li key={at}>
            <span class={`swatch part-${part.kind}`} aria-hidden="true" />
            {part.name}{at === first && " with reading and computing"} <span class="key-value">{length(part.seconds * 1000)}</span>
          </li>
        ))}
        {state && <li class="dim">{state.name} <span class="key-value">{length(state.seconds * 1000)}</span></li>}
      </ul>
    </div>
  );
}
