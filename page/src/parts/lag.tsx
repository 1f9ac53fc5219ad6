// What waits in Kafka, by topic and by partition, and some of the messages.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { clock, count, exact, moment, plural, rate, sentence } from "../format";
import { steady, useAsked, useKept } from "../hooks";
import type { Lag, Messages, Node, PartitionLag } from "../wire";
import { age, ago, caughtUp } from "../words";
import { Empty, Panel, Wide } from "./panel";
import { Bar, Spark } from "./sign";
import { Term } from "./term";

// Beyond this the table tells the worst, and how many more there are.
const MOST = 64;

// Fewer records than this are no news, although they grow: they are what arrives between two batches.
const MUCH = 1000;

interface Props {
  lag: Lag[];
  query: string;
  /** The estimated seconds until the query has read all. */
  left: number | null;
  sources: Node[];
  now: number;
  live: boolean;
  source: string;
  onSource: (name: string) => void;
}

export const LagPanel = steady(function LagPanel({ lag, query, left, sources, now, live, source, onSource }: Props): JSX.Element | null {
  const [open, setOpen] = useKept("partitions", false);
  const own = lag.filter((topic) => topic.query === query);
  // A query that reads no topic has no lag to speak of.
  if (own.length === 0 && sources.length === 0) return null;
  const total = own.reduce((sum, topic) => sum + (topic.behind ?? 0), 0);
  const known = own.some((topic) => topic.behind !== null);
  const old = age(Math.min(...own.map((topic) => Date.parse(topic.latest_at))), now);
  const partitions = own.reduce((sum, topic) => sum + topic.partitions, 0);
  return (
    <Panel
      id="lag"
      title={<Term of="lag">Lag</Term>}
      aside={
        own.length > 0 && (
          <>
            {known && <span class={old ? "dim" : ""}><b data-lag={total}>{exact(total)}</b> <span class="dim">{total === 1 ? "record" : "records"} behind{old ? `, ${old}` : left !== null && `, ${caughtUp(left)}`}</span></span>}
            <button type="button" class="button small" id="partitions" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Topics" : plural(partitions, "partition")}</button>
          </>
        )
      }
    >
      {own.length === 0 ? <Empty>The broker has not reported the offsets yet.</Empty> : open ? <Partitions query={query} live={live} /> : <Topics own={own} now={now} />}
      <MessagesPart sources={sources} live={live} source={source} onSource={onSource} />
    </Panel>
  );
});

/** Whether a growing lag is worth a warning: a few records more are usual. */
function isMuch(behind: number | null): boolean {
  return (behind ?? 0) >= MUCH;
}

/** A line for each topic. */
function Topics({ own, now }: { own: Lag[]; now: number }): JSX.Element {
  return (
    <Wide name="Lag by topic">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Topic</th>
            <th scope="col" class="num"><Term of="arriving">Arriving</Term></th>
            <th scope="col" class="num"><Term of="read">Read</Term></th>
            <th scope="col" class="num"><Term of="behind">Behind</Term></th>
            <th scope="col" class="course"><span class="hidden">Course</span></th>
            <th scope="col"><Term of="growing">Growing</Term></th>
          </tr>
        </thead>
        <tbody>
          {own.map(({ source, topic, partitions, history, growing_since, behind, arrival_rate, read_rate }) => {
            const warns = growing_since !== null && isMuch(behind);
            return (
              <tr key={`${source}/${topic}`} data-topic={topic}>
                <th scope="row">{topic} <span class="dim apart">{plural(partitions, "partition")}</span></th>
                <td class="num">{rate(arrival_rate)}</td>
                <td class="num">{rate(read_rate)}</td>
                <td class="num" title={exact(behind)}>{behind === 0 ? "all read" : (behind ?? 0) < 1e5 ? exact(behind) : count(behind)}</td>
                <td class="course"><Spark values={history} least={20} level={warns ? "warn" : "ok"} /></td>
                <td class={warns ? "warn" : "dim"}>{growing_since === null ? (behind === null ? "–" : "no") : `▲ ${ago(moment(growing_since), now).split(" ")[0]}`}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Wide>
  );
}

/** The partitions of the query, those with the largest lag first: the server has them in that order. */
function Partitions({ query, live }: { query: string; live: boolean }): JSX.Element {
  const asked = useAsked<PartitionLag[]>(`api/partitions?query=${encodeURIComponent(query)}`, 3000, live);
  const all = asked.value ?? [];
  const most = Math.max(1, all[0]?.behind ?? 0);
  return (
    <Wide name="Lag by partition" class="tall">
      {asked.error && <p class="note">{sentence(asked.error)}</p>}
      <table class="table">
        <thead>
          <tr>
            <th scope="col"><Term of="partition">Topic / partition</Term></th>
            <th scope="col" class="num"><Term of="committed">Committed</Term></th>
            <th scope="col" class="num"><Term of="end">End</Term></th>
            <th scope="col" class="num"><Term of="behind">Behind</Term></th>
            <th scope="col"><span class="hidden">Share of the largest lag</span></th>
          </tr>
        </thead>
        <tbody>
          {all.slice(0, MOST).map((part) => (
            <tr key={`${part.source}/${part.topic}/${part.partition}`} data-partition={`${part.topic}/${part.partition}`}>
              <th scope="row">{part.topic} <span class="dim">/ {part.partition}</span></th>
              <td class="num dim">{exact(part.offset)}</td>
              <td class="num dim">{exact(part.latest)}</td>
              <td class="num">{exact(part.behind)}</td>
              <td>{part.behind ? <Bar share={part.behind / most} level="ok" /> : null}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {all.length > MOST && <p class="dim">{all.length - MOST} more with less lag.</p>}
    </Wide>
  );
}

interface MessagesProps {
  sources: Node[];
  live: boolean;
  source: string;
  onSource: (name: string) => void;
}

function MessagesPart({ sources, live, source, onSource }: MessagesProps): JSX.Element | null {
  const [open, setOpen] = useState(true);
  const name = sources.some((node) => node.name === source) ? source : (sources[0]?.name ?? "");
  const asked = useAsked<Messages>(open && name ? `api/messages?source=${encodeURIComponent(name)}` : null, 5000, live);
  if (!sources.length) return null;
  return (
    <div class="sub">
      <div class="sub-head">
        <h3>Recent messages</h3>
        <label>
          <span class="hidden">Source</span>
          <select value={name} onChange={(event) => onSource(event.currentTarget.value)}>
            {sources.map((node) => <option key={node.id} value={node.name}>{node.name}</option>)}
          </select>
        </label>
        <button type="button" class="button small" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Hide" : "Show"}</button>
      </div>
      {open && (asked.error || asked.value?.note) && <p class="note">{sentence(asked.error || (asked.value?.note ?? ""))}</p>}
      {open && asked.value && (
        asked.value.messages.length === 0 ? <Empty>There are no messages in the topic.</Empty> : (
          <Wide name="Recent messages" class="short">
            <table class="table messages">
              <thead>
                <tr><th scope="col">At</th><th scope="col" class="num">Part.</th><th scope="col" class="num">Offset</th><th scope="col">Key</th><th scope="col">Value</th></tr>
              </thead>
              <tbody>
                {asked.value.messages.map((message) => (
                  <tr key={`${message.topic}/${message.partition}/${message.offset}`}>
                    <td class="dim">{clock(moment(message.timestamp))}</td>
                    <td class="num dim">{message.partition}</td>
                    <td class="num dim" title={message.topic}>{message.offset}</td>
                    <td class="mono">{message.key ?? <span class="dim">null</span>}</td>
                    <td class="mono value" title={message.value ?? ""}>{message.value ?? <span class="dim">null</span>}{message.cut ? "…" : ""}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Wide>
        )
      )}
    </div>
  );
}

