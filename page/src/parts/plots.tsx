// Four plots of the chosen query on one axis of time.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { bytes, clock, count, length, rate } from "../format";
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
  version: number;
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

export function PlotsPanel({ query, series, version, now, started, span, theme, onSpan }: Props): JSX.Element {
  const [point, setPoint] = useState<number | null>(null);
  const plots = useMemo(() => (series && series.time.length ? shown(series) : []), [series, version, Math.floor(now / 1000)]);
  const end = now / 1000;
  const earliest = Math.min(series?.time[0] ?? started / 1000, started / 1000);
  const range: [number, number] = [Math.max(end - span * 60, Math.min(earliest, end - 60)), end];
  const at = point ?? (series ? series.time.length - 1 : 0);
  return (
    <Panel
      id="plots"
      title={query ? `${query.name} over time` : "Over time"}
      aside={
        <>
          <span class="dim plot-when">{point !== null && series?.time[point] ? clock(series.time[point] * 1000) : "latest batch"}</span>
          <span class="group" role="group" aria-label="Length of time shown">
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
        <Empty>{query ? "No batch has been committed yet; the first one draws the first point." : "Choose a query."}</Empty>
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
}

function shown(series: Series): Shown[] {
  const time = [...series.time];
  return [rates(series, time), durations(series, time), times(series, time), states(series, time)];
}

function rates(series: Series, time: number[]): Shown {
  const columns = [series.input_rate, series.processed_rate];
  return {
    id: "rates",
    title: "Rows a second",
    lines: [
      { of: "rows_in", word: "input", colour: "--s1" },
      { of: "processed", word: "processed", colour: "--s2" },
    ],
    data: [time, ...columns.map((column) => [...column])],
    order: [0, 1],
    write: count,
    tell: (line, at) => rate(columns[line]?.[at]),
    grounded: true,
  };
}

function durations(series: Series, time: number[]): Shown {
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

function times(series: Series, time: number[]): Shown {
  const columns = [time, series.newest, series.watermark];
  return {
    id: "times",
    title: "Event time",
    lines: [
      { of: "clock", word: "clock", colour: "--s6", dashed: true },
      { of: "newest", word: "newest event", colour: "--s1" },
      { of: "watermark", word: "watermark", colour: "--s2" },
    ],
    data: [time, ...columns.map((column) => [...column])],
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

function states(series: Series, time: number[]): Shown {
  return {
    id: "states",
    title: "State",
    lines: [{ of: "state_rows", word: "rows", colour: "--s3" }],
    data: [time, [...series.state_rows]],
    order: [0],
    write: count,
    tell: (_, at) => `${count(series.state_rows[at])} · ${bytes(series.state_bytes[at])}`,
    grounded: true,
  };
}
