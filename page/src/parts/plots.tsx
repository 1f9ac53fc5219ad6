// Four plots of the chosen query on one axis of time.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { bytes, clock, count, length, rate } from "../format";
import { steady } from "../hooks";
import type { TermName } from "../terms";
import type { Query, Series } from "../wire";
import { Empty, Panel } from "./panel";
import { type Line, Plot, type Values } from "./plot";
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
  /** How the value at a point is told beside the line's name. */
  tell: (line: number, at: number) => string;
  grounded: boolean;
}

export const PlotsPanel = steady(function PlotsPanel({ query, series: whole, now, started, span, theme, onSpan }: Props): JSX.Element {
  const [point, setPoint] = useState<number | null>(null);
  const end = now / 1000;
  // The series grows in place; the clock says when to look again.
  const series = useMemo(() => whole && thin(whole, end - span * 60), [whole, now, span]);
  const plots = useMemo(() => (series && series.time.length ? shown(series) : []), [series]);
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
      {plots.length === 0 ? (
        <Empty>{query ? "No batch has been committed yet; the first one adds the first point." : "Select a query."}</Empty>
      ) : (
        plots.map((plot, row) => (
          <figure key={plot.id} class="plot-row" data-plot={plot.id}>
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
              theme={theme}
              sync="time"
              onPoint={setPoint}
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

function shown(series: Series): Shown[] {
  return [rates(series), durations(series), times(series), states(series)];
}

function rates(series: Series): Shown {
  const columns = [series.input_rate, series.processed_rate];
  return {
    id: "rates",
    title: "Rows per second",
    lines: [
      { of: "rows_in", word: "input", colour: "--s1" },
      { of: "processed", word: "processed", colour: "--s2" },
    ],
    data: [series.time, ...columns],
    order: [0, 1],
    write: count,
    tell: (line, at) => rate(columns[line]?.[at]),
    grounded: true,
  };
}

function durations(series: Series): Shown {
  const { time } = series;
  const phases = PHASES.filter(([name]) => series.phases[name]);
  // getBatch takes no time worth a colour of its own; the sum of all phases is the batch's duration.
  const merged = phases.map(([name]) =>
    time.map((_, at) => (series.phases[name]?.[at] ?? 0) + (name === "other" ? (series.phases["getBatch"]?.[at] ?? 0) : 0)),
  );
  const sums: number[][] = [];
  for (const [index, values] of merged.entries()) sums.push(values.map((value, at) => value + (sums[index - 1]?.[at] ?? 0)));
  const trigger = series.trigger_seconds;
  // The greatest sum is painted first, each smaller one over it.
  const layers = phases.map(([name, colour], index) => ({ name, colour, index })).reverse();
  const lines: Shown["lines"] = layers.map(({ name, colour }) => ({ of: name, word: name, colour, filled: true, stepped: true }));
  const data: [number[], ...Values[]] = [time, ...layers.map(({ index }) => sums[index] ?? [])];
  if (trigger) {
    lines.push({ of: "trigger", word: "trigger", colour: "--text", dashed: true });
    data.push(time.map(() => trigger));
  }
  return {
    id: "durations",
    title: "Batch duration",
    lines,
    data,
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

function times(series: Series): Shown {
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
    data: [time, ...columns],
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

function states(series: Series): Shown {
  return {
    id: "states",
    title: "State",
    lines: [{ of: "state_rows", word: "rows", colour: "--s3" }],
    data: [series.time, series.state_rows],
    order: [0],
    write: count,
    tell: (_, at) => `${count(series.state_rows[at])} · ${bytes(series.state_bytes[at])}`,
    grounded: true,
  };
}
