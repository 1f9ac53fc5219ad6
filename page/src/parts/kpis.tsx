// Four large figures with the minutes before them.
import type { JSX } from "preact";
import { count, length, percent, rate } from "../format";
import type { TermName } from "../terms";
import type { Level, Maybe, State } from "../wire";
import { age, caughtUp, load } from "../words";
import { Spark } from "./sign";
import { Term } from "./term";

interface Kpi {
  id: string;
  of: TermName;
  name: string;
  value: string;
  note: string;
  level: Level;
  history: Maybe<number>[];
}

export function Kpis({ state, now }: { state: State; now: number }): JSX.Element {
  return (
    <dl class="kpis">
      {kpis(state, now).map((kpi) => (
        <div key={kpi.id} class={`kpi ${kpi.level}`} data-kpi={kpi.id}>
          <dt><Term of={kpi.of}>{kpi.name}</Term></dt>
          <dd>
            <span class="kpi-value">{kpi.value}</span>
            <span class="kpi-note">{kpi.note}</span>
            <Spark values={kpi.history} level={kpi.level} wide />
          </dd>
        </div>
      ))}
    </dl>
  );
}

// Nothing happens in a query in one of these states: its events only grow older, and its last batch stays the last one.
const QUIET = new Set(["idle", "stopped", "failed"]);

function kpis(state: State, now: number): Kpi[] {
  const { history } = state;
  // The server leaves quiet queries out of freshness and load, unless there are no others.
  const active = state.queries.filter((query) => !QUIET.has(query.state));
  const quiet = active.length === 0;
  const queries = quiet ? state.queries : active;
  const trigger = Math.max(1, ...queries.map((query) => query.trigger_seconds ?? 0));
  const batch = Math.max(0, ...queries.map((query) => query.batch_seconds ?? 0));
  const young = state.level === "start";
  // Rows are read once a trigger, so an age of some triggers is usual; nothing is late where nothing arrives.
  const old = state.freshness_seconds !== null && state.freshness_seconds > 3 * Math.max(trigger, batch) + 10;
  const behindAge = age(state.behind_at === null ? null : Date.parse(state.behind_at), now);
  const busy = state.busy;
  return [
    { id: "rate", of: "rows_in", name: "Rows in", value: rate(state.input_rate), note: `${count(state.rows_in)} in all`, level: "ok", history: history.input_rate },
    {
      id: "behind",
      of: "behind",
      name: "Behind",
      value: count(state.behind),
      note: behindAge || caughtUp(state.caught_up_in_seconds) || (state.behind === null ? (state.lag.length || young ? "not known yet" : "no topic is read") : state.behind === 1 ? "record" : "records"),
      level: behindAge ? "off" : queries.some((query) => query.state === "falling_behind") ? "warn" : "ok",
      history: history.behind,
    },
    {
      id: "freshness",
      of: "freshness",
      name: "Freshness",
      value: length(state.freshness_seconds === null ? null : state.freshness_seconds * 1000),
      note: state.freshness_seconds === null ? (young ? "not known yet" : "no event time") : quiet ? "since the last event" : old ? `late: ${batch > trigger ? "a batch takes" : "trigger"} ${length(Math.max(trigger, batch) * 1000)}` : "newest event",
      level: quiet || state.freshness_seconds === null ? "off" : old ? "warn" : "ok",
      history: history.freshness,
    },
    {
      id: "load",
      of: "load",
      name: "Batch / trigger",
      value: percent(busy),
      note: busy === null ? (queries.some((query) => query.trigger_seconds) ? "no batch yet" : "no interval") : queries.some((query) => load(query).runs && (load(query).share ?? 0) > 1) ? "a batch still runs" : busy > 1 ? "longer than the trigger" : "of the trigger",
      level: busy === null || young || quiet ? "off" : busy > 1 ? "bad" : busy > 0.8 ? "warn" : "ok",
      history: history.busy,
    },
  ];
}
