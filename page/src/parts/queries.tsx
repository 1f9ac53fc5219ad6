// A row for each query: its state first, then what tells why.
import type { JSX } from "preact";
import { bytes, count, exact, length, percent, rate, when } from "../format";
import { steady } from "../hooks";
import type { Query } from "../wire";
import { ago } from "../words";
import { Empty, Panel, Wide } from "./panel";
import { Bar, Sign, Spark } from "./sign";
import { Term } from "./term";

interface Props {
  queries: Query[];
  chosen: string;
  now: number;
  onChoose: (query: string) => void;
}

export const QueriesPanel = steady(function QueriesPanel({ queries, chosen, now, onChoose }: Props): JSX.Element {
  return (
    <Panel id="queries" title="Queries" aside={<span class="dim">select one to see its plots, lag and results</span>}>
      {queries.length === 0 ? (
        <Empty>No query is running yet. Spark takes some seconds to start.</Empty>
      ) : (
        <Wide name="Table of queries">
          <table class="table">
            <thead>
              <tr>
                <th scope="col"><Term of="query">Query</Term></th>
                <th scope="col"><Term of="state">State</Term></th>
                <th scope="col" class="num"><Term of="since">for</Term></th>
                <th scope="col" class="num"><Term of="batch">Batch</Term></th>
                <th scope="col" class="num"><Term of="rows_in">In</Term></th>
                <th scope="col"><span class="hidden">Input rate over time</span></th>
                <th scope="col" class="num"><Term of="processed">Processed</Term></th>
                <th scope="col" class="num"><Term of="rows_out">Out</Term></th>
                <th scope="col"><Term of="load">Batch / trigger</Term></th>
                <th scope="col" class="num"><Term of="behind">Behind</Term></th>
                <th scope="col" class="num"><Term of="watermark_lag">Watermark lag</Term></th>
                <th scope="col" class="num"><Term of="state_rows">State</Term></th>
                <th scope="col" class="num"><Term of="late">Late</Term></th>
                <th scope="col" class="num"><Term of="letters">Dead letters</Term></th>
              </tr>
            </thead>
            <tbody>
              {queries.map((query) => (
                <tr
                  key={query.name}
                  class={`row ${query.name === chosen ? "chosen" : ""} is-${query.level}`}
                  data-query={query.name}
                  onClick={() => onChoose(query.name)}
                >
                  <th scope="row">
                    <button type="button" class="choose" aria-pressed={query.name === chosen} onClick={() => onChoose(query.name)}>
                      {query.name}
                    </button>
                  </th>
                  <td title={query.why}><Sign level={query.level} word={query.state} /></td>
                  <td class="num dim" title={query.since ? `since ${when(Date.parse(query.since), now)}` : ""}>{ago(query.since ? Date.parse(query.since) : null, now)}</td>
                  <td class="num">{exact(query.batch)}</td>
                  <td class="num">{rate(query.input_rate)}</td>
                  <td><Spark values={query.rates} /></td>
                  <td class="num">{rate(query.processed_rate)}</td>
                  <td class="num">{rate(query.output_rate)}</td>
                  <td>
                    <span class="load">
                      <Bar share={query.busy} />
                      <span class="num">{length(query.batch_seconds === null ? null : query.batch_seconds * 1000)}</span>
                      <span class="num dim">{query.busy === null ? "" : percent(query.busy)}</span>
                    </span>
                  </td>
                  <td class="num">{count(query.behind)}</td>
                  <td class="num">{length(query.watermark_lag_seconds === null ? null : query.watermark_lag_seconds * 1000)}</td>
                  <td class="num" title={`${exact(query.state_rows)} rows, ${bytes(query.state_bytes)}`}>{count(query.state_rows)}</td>
                  <td class={`num ${query.late_rows ? "" : "dim"}`}>{count(query.late_rows)}</td>
                  <td class={`num ${query.dead_letters ? "warn" : "dim"}`}>{count(query.dead_letters)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Wide>
      )}
    </Panel>
  );
});
