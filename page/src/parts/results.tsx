// The latest rows of a sink, and a plot of them.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Choice, chart, MOST_LINES, numeric, splits, windows } from "../chart";
import { cell, clock, count, hourOf, moment, sentence, when } from "../format";
import { steady, useAsked, useKept } from "../hooks";
import type { Node, Rows } from "../wire";
import { Bars } from "./bars";
import { Empty, Panel, Wide } from "./panel";
import { Plot } from "./plot";
import { Term } from "./term";

const COLOURS = ["--s1", "--s2", "--s3", "--s4", "--s5", "--s6"];
const SHOWN = 12;
// No column is narrower, in pixels: a date and a time of day, or a long name on two lines.
const LEAST_COLUMN = 86;

interface Props {
  sinks: Node[];
  pipeline: string;
  query: string;
  /** Seconds since 1970 up to which windows are final: the watermark, or the clock where there is none. */
  final: number;
  live: boolean;
  theme: string;
}

export const ResultsPanel = steady(function ResultsPanel({ sinks, pipeline, query, final, live, theme }: Props): JSX.Element {
  const [kept, keep] = useKept(`sink.${pipeline}.${query}`, "");
  const sink = sinks.find((node) => node.id === kept) ?? sinks[0];
  const asked = useAsked<Rows>(sink ? `api/rows?sink=${encodeURIComponent(sink.id)}` : null, 5000, live);
  const rows = asked.value;
  return (
    <Panel
      id="results"
      title={<Term of="results">Results</Term>}
      aside={
        sink && (
          <>
            {rows?.at && <span class="dim">as of {clock(moment(rows.at))}</span>}
            <label>
              <span class="hidden">Sink</span>
              <select value={sink.id} onChange={(event) => keep(event.currentTarget.value)}>
                {sinks.map((node) => <option key={node.id} value={node.id}>{node.name}</option>)}
              </select>
            </label>
          </>
        )
      }
    >
      {!sink && <Empty>{query ? `This page cannot read any sink of ${query}.` : "Select a query."}</Empty>}
      {(asked.error || rows?.note) && <p class="note">{sentence(asked.error || (rows?.note ?? ""))}</p>}
      {sink && rows && rows.rows.length > 0 && (
        <>
          <Drawn rows={rows} kept={`columns.${pipeline}.${sink.id}`} final={final} theme={theme} />
          <RowsTable rows={rows} />
        </>
      )}
      {sink && rows && rows.rows.length === 0 && !rows.note && <Empty>No rows have been written yet. An aggregation in append mode writes a window only after the watermark has passed its end.</Empty>}
    </Panel>
  );
});

function Drawn({ rows, kept, final, theme }: { rows: Rows; kept: string; final: number; theme: string }): JSX.Element {
  const offered = numeric(rows);
  const parts = splits(rows);
  const [choice, keep] = useKept<Choice>(kept, { values: [], split: "" });
  const first = rows.value_columns.filter((name) => offered.includes(name)).slice(0, 3);
  const values = choice.values.filter((name) => offered.includes(name));
  const now: Choice = { values: values.length ? values : first.length ? first : offered.slice(0, 1), split: parts.includes(choice.split) ? choice.split : "" };
  const key = JSON.stringify(now);
  const drawn = useMemo(() => chart(rows, now), [rows, key]);
  const toggle = (name: string): void => {
    const next = now.split ? [name] : now.values.includes(name) ? now.values.filter((one) => one !== name) : [...now.values, name].slice(-MOST_LINES);
    keep({ ...now, values: next });
  };
  if (!drawn) return <p class="note">{rows.time_column ? "There is no numeric column to plot." : "There is no time column to plot these rows over."}</p>;
  const times = drawn.data[0];
  const low = times[0] ?? 0;
  const high = times.at(-1) ?? 0;
  const shown = windows(rows, drawn, final);
  const title = `${drawn.names.join(", ")} by ${rows.time_column}`;
  return (
    <div class="drawn">
      <div class="choices">
        <span class="group" role="group" aria-label="Plotted columns">
          {offered.map((name) => (
            <button key={name} type="button" class="button small" aria-pressed={now.values.includes(name)} onClick={() => toggle(name)}>{name}</button>
          ))}
        </span>
        {parts.length > 0 && (
          <label class="dim">
            by{" "}
            <select value={now.split} onChange={(event) => keep({ values: now.values.slice(0, 1), split: event.currentTarget.value })}>
              <option value="">all rows</option>
              {parts.map((name) => <option key={name} value={name}>{name}</option>)}
            </select>
          </label>
        )}
      </div>
      <ul class="keys">
        {drawn.names.map((name, index) => (
          <li key={name}>
            <span class="swatch" style={{ "--swatch": `var(${COLOURS[index]})` }} aria-hidden="true" />
            {name} <span class="key-value">{count(drawn.data[index + 1]?.at(-1) as number | null)}</span>
          </li>
        ))}
        {shown && shown.data[0].some((start) => start >= shown.open) && <li class="dim"><span class="swatch hatched" aria-hidden="true" />not final</li>}
      </ul>
      {shown ? <Bars name={title} colours={COLOURS.slice(0, drawn.names.length)} data={shown.data} open={shown.open} write={count} label={hourOf} /> : <Plot
        name={title}
        lines={drawn.names.map((_, index) => ({ colour: COLOURS[index] ?? "--s6", dots: times.length === 1 }))}
        data={drawn.data}
        range={high > low ? [low, high] : [low - 60, low + 60]}
        height={150}
        write={count}
        timed
        grounded
        theme={theme}
        sync="results"
      />}
      {rows.truncated && <p class="note">Sums of a sample of {rows.rows.length} rows: the sink may have more at each time.</p>}
    </div>
  );
}

function RowsTable({ rows }: { rows: Rows }): JSX.Element {
  const [all, setAll] = useState(false);
  const shown = all ? rows.rows : rows.rows.slice(0, SHOWN);
  const numbers = new Set(numeric(rows));
  const today = Date.now();
  // Columns are equally wide, and a whole number of them fits: at the edge of the panel no name is cut.
  const table = useRef<HTMLTableElement>(null);
  const [room, setRoom] = useState(6 * LEAST_COLUMN);
  useEffect(() => {
    const holder = table.current?.parentElement;
    if (!holder) return;
    const seen = new ResizeObserver(() => setRoom(holder.clientWidth));
    seen.observe(holder);
    return () => seen.disconnect();
  }, []);
  const fits = Math.max(1, Math.min(rows.columns.length, Math.floor(room / LEAST_COLUMN)));
  return (
    <>
      <Wide name="Latest rows" class="rest">
        <table class="table rows" ref={table} style={{ width: `${(100 * rows.columns.length) / fits}%` }}>
          <thead>
            <tr>{rows.columns.map((column) => <th key={column.name} scope="col" class={numbers.has(column.name) ? "num" : ""} title={`${column.name}, ${column.type}`}>{breakable(column.name)}</th>)}</tr>
          </thead>
          <tbody>
            {shown.map((row, at) => (
              <tr key={at}>
                {rows.columns.map((column, index) => {
                  const value = row[index];
                  const at = column.type === "timestamp" && typeof value === "string" ? moment(value) : null;
                  return <td key={column.name} class={`${numbers.has(column.name) ? "num" : ""} ${value === null ? "dim" : ""}`} title={at !== null || cell(value).length > 9 ? String(value) : ""}>{at === null ? cell(value) : when(at, today)}</td>;
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
      {rows.rows.length > SHOWN && <button type="button" class="button small more" aria-expanded={all} onClick={() => setAll(!all)}>{all ? "Show fewer" : `Show all ${rows.rows.length} rows`}</button>}
    </>
  );
}

/** A name that may go on in a second line after each underscore. */
function breakable(name: string): (string | JSX.Element)[] {
  return name.split(/(?<=_)/).flatMap((part, at) => (at ? [<wbr key={at} />, part] : [part]));
}
