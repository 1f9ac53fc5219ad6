// What waits in Kafka, partition by partition, and some of the messages.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { clock, exact, moment, plural } from "../format";
import { steady, useAsked } from "../hooks";
import type { Lag, Messages, Node } from "../wire";
import { ago } from "../words";
import { Empty, Panel, Wide } from "./panel";
import { Bar, Spark } from "./sign";
import { Term } from "./term";

// Beyond this the table tells the worst, and how many more there are.
const MOST = 64;

interface Props {
  lag: Lag[];
  query: string;
  sources: Node[];
  now: number;
  live: boolean;
  source: string;
  onSource: (name: string) => void;
}

export const LagPanel = steady(function LagPanel({ lag, query, sources, now, live, source, onSource }: Props): JSX.Element {
  const own = lag.filter((part) => part.query === query).sort(byPlace);
  const shown = own.length > MOST ? [...own].sort((a, b) => (b.behind ?? 0) - (a.behind ?? 0)).slice(0, MOST) : own;
  const total = own.reduce((sum, part) => sum + (part.behind ?? 0), 0);
  const most = Math.max(1, ...own.map((part) => part.behind ?? 0));
  return (
    <Panel id="lag" title={<Term of="lag">Lag</Term>} aside={own.length > 0 && <span><b data-lag={total}>{exact(total)}</b> <span class="dim">{total === 1 ? "record" : "records"} behind in {plural(own.length, "partition")}</span></span>}>
      {own.length === 0 ? (
        <Empty>{query ? `${query} reads no topic, or its first batch has not run yet.` : "Select a query."}</Empty>
      ) : (
        <Wide name="Lag by partition" class="tall">
          <table class="table">
            <thead>
              <tr>
                <th scope="col"><Term of="partition">Topic / partition</Term></th>
                <th scope="col" class="num"><Term of="committed">Committed</Term></th>
                <th scope="col" class="num"><Term of="end">End</Term></th>
                <th scope="col" class="num"><Term of="behind">Behind</Term></th>
                <th scope="col"><span class="hidden">Share of the largest lag</span></th>
                <th scope="col"><span class="hidden">Course</span></th>
                <th scope="col"><Term of="growing">Growing</Term></th>
              </tr>
            </thead>
            <tbody>
              {shown.map((part) => (
                <tr key={`${part.topic}/${part.partition}`} data-partition={`${part.topic}/${part.partition}`}>
                  <th scope="row">{part.topic} <span class="dim">/ {part.partition}</span></th>
                  <td class="num dim">{exact(part.offset)}</td>
                  <td class="num dim">{exact(part.latest)}</td>
                  <td class="num">{exact(part.behind)}</td>
                  <td><Bar share={(part.behind ?? 0) / most} level={part.growing_since ? "warn" : "ok"} /></td>
                  <td><Spark values={part.history} least={20} level={part.growing_since ? "warn" : "ok"} /></td>
                  <td class={part.growing_since ? "warn" : "dim"}>{part.growing_since ? `▲ ${ago(moment(part.growing_since), now).split(" ")[0]}` : "no"}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {own.length > MOST && <p class="dim">{own.length - MOST} more with less lag.</p>}
        </Wide>
      )}
      <MessagesPart sources={sources} live={live} source={source} onSource={onSource} />
    </Panel>
  );
});

function byPlace(a: Lag, b: Lag): number {
  return a.topic.localeCompare(b.topic) || Number(a.partition) - Number(b.partition);
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
      {open && (asked.error || asked.value?.note) && <p class="note">{asked.error || asked.value?.note}</p>}
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

