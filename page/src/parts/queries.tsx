// A row for each query: its state first, then what tells why.
import type { JSX } from "preact";
import { bytes, count, exact, length, percent, rate, when } from "../format";
import { steady } from "../hooks";
import type { Query } from "../wire";
import { age, ago, load, word } from "../words";
import { Empty, Panel, Wide } from "./panel";
import { PartsBar, Sign, Spark } from "./sign";
import { Term } from "./term";

interface Props {
  queries: Query[];
  chosen: string;
  now: number;
  onChoose: (query: string) => void;
}

const loadClass = (share: number | null): string => (share === null || share <= 0.8 ? "dim" : share > 1 ? "bad" : "warn");
const behindAge = (query: Query, now: number): string => age(query.behind_at === null ? null : Date.parse(query.behind_at), now);

export const QueriesPanel = steady(function QueriesPanel({ queries, chosen, now, onChoose }: Props): JSX.Element {
  return (
    <Panel id="queries" title="Queries" aside={<span class="dim">select one to see its plots, lag and results</span>}>
      {queries.length === 0 ? (
        <Empty>No query is running yet. Spark takes some seconds to start.</Empty>
      ) : (
        <Wide name="Table of queries" class="cards">
          <table class="table">
            <thead>
              <tr>
                <th scope="col"><Term of="query">Query</Term></th>
                <th scope="col"><Term of="state">State</Term></th>
                <th scope="col" class="num"><Term of="since">since</Term></th>
                <th scope="col" class="num"><Term of="batch">Batch</Term></th>
                <th scope="col" class="num"><Term of="rows_in">In</Term></th>
                <th scope="col"><span class="hidden">Input rate over time</span></th>
                <th scope="col" class="num"><Term of="processed">Processed</Term></th>
                <th scope="col" class="num"><Term of="rows_out">Out</Term></th>
                <th scope="col"><Term of="load">Batch / trigger</Term></th>
                <th scope="col" class="num"><Term of="behind">Behind</Term></th>
                <th scope="col" class="num"><Term of="watermark_lag">Watermark lag</Term></th>
                <th scope="col" class="num"><Term of="state_rows">State rows</Term></th>
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
                  <td title={query.why}><Sign level={query.level} word={word(query.state)} /></td>
                  <td class="num dim" data-label="since" title={query.since ? `since ${when(Date.parse(query.since), now)}` : ""}>{ago(query.since ? Date.parse(query.since) : null, now)}</td>
                  <td class="num" data-label="batch">{exact(query.batch)}</td>
                  <td class="num" data-label="in">{rate(query.input_rate)}</td>
                  <td class="course"><Spark values={query.rates} /></td>
                  <td class="num" data-label="processed">{rate(query.processed_rate)}</td>
                  <td class="num" data-label="out">{rate(query.output_rate)}</td>
                  <td data-label="batch / trigger">
                    <span class="load">
                      <PartsBar parts={query.parts} whole={query.trigger_seconds ?? query.batch_seconds ?? 1} />
                      <span class="num" title={load(query).runs ? "the running batch so far" : "the last batch"}>{load(query).runs && <span class="dim">runs </span>}{length(load(query).seconds === null ? null : (load(query).seconds ?? 0) * 1000)}</span>
                      <span class={`num ${loadClass(load(query).share)}`}>{load(query).share === null ? "" : percent(load(query).share)}</span>
                    </span>
                  </td>
                  <td class={`num ${behindAge(query, now) ? "dim" : ""}`} data-label="behind">{count(query.behind)}{behindAge(query, now) && <span class="dim">, {behindAge(query, now)}</span>}</td>
                  <td class="num" data-label="watermark lag">{length(query.watermark_lag_seconds === null ? null : query.watermark_lag_seconds * 1000)}</td>
                  <td class="num" data-label="state rows" title={`${exact(query.state_rows)} rows, ${bytes(query.state_bytes)}`}>{count(query.state_rows)}</td>
                  <td class={`num ${query.late_rows ? "" : "dim"}`} data-label="late">{count(query.late_rows)}</td>
                  <td class={`num ${query.dead_letters ? "warn" : "dim"}`} data-label="dead letters">{count(query.dead_letters)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Wide>
      )}
    </Panel>
  );
});
