// The graph: sources, views, queries and sinks; edges by rate, queries by batch time over trigger.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count, length, percent, rate } from "../format";
import { steady } from "../hooks";
import { type Box, place, type Placed, type Shape } from "../layout";
import type { Edge, Kind, Node, Query } from "../wire";
import { load, SIGNS, word } from "../words";
import { bends, Flow } from "./flow";
import { Empty, Panel } from "./panel";
import { CLASSES } from "./sign";
import { Term } from "./term";

const SHAPE: Shape = { height: 50, gap: 10, between: 30, below: 34, least: 96 };
const TITLES: [Kind, string][] = [
  ["source", "Sources"],
  ["view", "Views"],
  ["query", "Queries"],
  ["sink", "Sinks"],
];
const PAD = 4;
// Widths of letters, in pixels: names are 13 px and bold, figures 11.5 px.
const NAME = 7.5;
const FIGURE = 6.1;
const INSET = 13;
const MOST_FIGURES = 24;
const MOST_OF_SOURCE = 27;

interface Props {
  nodes: Node[];
  edges: Edge[];
  queries: Query[];
  behind: Map<string, number>;
  chosen: string;
  live: boolean;
  onChoose: (node: Node) => void;
}

export const GraphPanel = steady(function GraphPanel({ nodes, edges, queries, behind, chosen, live, onChoose }: Props): JSX.Element {
  const holder = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState<[number, number]>([1000, 300]);
  useEffect(() => {
    const here = holder.current;
    if (!here) return;
    // Without its padding, which `clientWidth` has.
    const seen = new ResizeObserver(([entry]) => entry && setRoom([Math.floor(entry.contentRect.width) - 2 * PAD, Math.floor(entry.contentRect.height) - 2 * PAD]));
    seen.observe(here);
    return () => seen.disconnect();
  }, []);
  // A node keeps its width while its figures change.
  const preferred = new Map(nodes.map((node) => [node.id, Math.round(Math.max((node.name.length + 2.5) * NAME, widest(node) * FIGURE)) + 2 * INSET]));
  const shape = [...preferred].join() + edges.map((edge) => edge.from + edge.to).join();
  const placed = useMemo(() => {
    const sinks = new Set(nodes.filter((node) => node.kind === "sink").map((node) => node.id));
    return place(preferred, edges, sinks, room, SHAPE);
  }, [shape, room[0], room[1]]);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const details = new Map(queries.map((query) => [query.name, query]));
  const lit = new Set(nodes.filter((node) => node.queries.includes(chosen)).map((node) => node.id));
  const drawn = edges.flatMap((edge) => {
    const from = placed.boxes.get(edge.from);
    const to = placed.boxes.get(edge.to);
    return from && to ? [{ edge, id: `${edge.from}>${edge.to}`, ...ends(from, to, placed) }] : [];
  });
  const streams = live ? drawn.filter(({ edge }) => edge.rate).map(({ edge, id, from, to }) => ({ id, from, to, upright: placed.upright, rate: edge.rate ?? 0 })) : [];
  return (
    <Panel id="graph" title="Pipeline" aside={<Legend />}>
      <div class="wide graph" role="region" aria-label="Graph of the pipeline" tabIndex={0} ref={holder}>
        {nodes.length === 0 ? (
          <Empty>The graph appears after the run has loaded the spec.</Empty>
        ) : (
          <div class="drawing">
            <Flow streams={streams} />
            <svg width={placed.width + 2 * PAD} height={placed.height + 2 * PAD} role="group" aria-label="Sources, views, queries and sinks">
              <g transform={`translate(${PAD},${PAD})`}>
                {drawn.map(({ edge, id, from, to }) => (
                  <path
                    key={id}
                    class={lit.has(edge.from) && lit.has(edge.to) ? "edge on" : "edge"}
                    d={curve(from, to, placed.upright)}
                    stroke-width={wide(edge.rate)}
                  >
                    <title>{`${byId.get(edge.from)?.name ?? ""} to ${byId.get(edge.to)?.name ?? ""}: ${edge.rate === null ? "rate unknown" : rate(edge.rate)}`}</title>
                  </path>
                ))}
                {nodes.map((node) => {
                  const at = placed.boxes.get(node.id);
                  return at && <Shown key={node.id} node={node} at={at} query={node.kind === "query" ? details.get(node.name) : undefined} lit={lit.has(node.id)} chosen={node.kind === "query" && node.name === chosen} behind={behind.get(node.id) ?? null} upright={placed.upright} onChoose={onChoose} />;
                })}
              </g>
            </svg>
          </div>
        )}
      </div>
    </Panel>
  );
});

/** The letters that the figures of a node may take. */
function widest(node: Node): number {
  if (node.kind === "query") return MOST_FIGURES;
  return Math.max(node.kind === "source" && node.messages ? MOST_OF_SOURCE : 9, Math.min(26, node.label === node.name ? 0 : node.label.length));
}

function ends(from: Box, to: Box, placed: Placed): { from: [number, number]; to: [number, number] } {
  return placed.upright
    ? { from: [from.x + from.width / 2, from.y + SHAPE.height], to: [to.x + to.width / 2, to.y] }
    : { from: [from.x + from.width, from.y + SHAPE.height / 2], to: [to.x, to.y + SHAPE.height / 2] };
}

function Legend(): JSX.Element {
  return (
    <span class="dim legend-words">
      {TITLES.map(([kind, title]) => (
        <Term key={kind} of={kind}>
          <span class={`kind ${kind}`} aria-hidden="true" />
          {title}
        </Term>
      ))}
    </span>
  );
}

interface ShownProps {
  node: Node;
  at: Box;
  query: Query | undefined;
  lit: boolean;
  chosen: boolean;
  behind: number | null;
  upright: boolean;
  onChoose: (node: Node) => void;
}

function Shown({ node, at, query, lit, chosen, behind, upright, onChoose }: ShownProps): JSX.Element {
  const { x, y, width } = at;
  const full = said(node, behind, query);
  const figures = fitting([full, ...(query ? [full.replace(" of trigger", ""), full.split(" · ")[0] ?? ""] : briefer(node, behind))], (width - 2 * INSET + 6) / FIGURE);
  const well = node.level === "ok" || node.level === "off" || node.level === "start";
  const signed = node.kind === "query" || !well;
  // Without its kind a sink's path may fit.
  const place = node.kind === "sink" ? node.name.split(" ").slice(1).join(" ") : "";
  const name = fitting([node.name, place].filter(Boolean), (width - INSET - (signed ? 26 : 8)) / NAME);
  const choose = (): void => onChoose(node);
  // A reader of screens hears what is written in the node, in its order, after what it is.
  const title = `${node.kind} ${node.name}: ${[node.label, node.state && word(node.state), node.arrival_rate !== null && `${rate(node.arrival_rate)} arrive`].filter(Boolean).join(", ")}`;
  return (
    <g
      class={`node ${node.kind} ${CLASSES[node.level]} ${lit ? "on" : ""} ${chosen ? "chosen" : ""} ${well ? "" : "ill"}`}
      transform={`translate(${x.toFixed(1)},${y.toFixed(1)})`}
      role="button"
      tabindex={0}
      aria-label={`${title} ${name} ${figures}`}
      data-node={node.id}
      onClick={choose}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose();
      }}
    >
      <title>{title}</title>{" "}
      {query && <Queue query={query} width={width} upright={upright} />}
      <rect class="box" width={width} height={SHAPE.height} rx={node.kind === "query" ? 7 : 4} />
      <rect class="stripe" width={3} height={SHAPE.height - 12} x={0} y={6} rx={1.5} />
      <text class="name" x={INSET} y={19}>
        {name}
      </text>
      {" "}
      <text class="figures" x={INSET} y={35}>
        {figures}
      </text>
      {signed && (
        <text class="glyph" x={width - 11} y={19} text-anchor="end" aria-hidden="true">
          {SIGNS[node.level]}
        </text>
      )}
      {query && node.busy !== null && <Load query={query} width={width - 2 * INSET} />}
    </g>
  );
}

/** The parts of the last batch along the foot of a query, as a share of its trigger. */
function Load({ query, width }: { query: Query; width: number }): JSX.Element {
  const parts = query.parts.filter((part) => part.kind !== "state");
  const sum = parts.reduce((total, part) => total + part.seconds, 0);
  const scale = width / Math.max(query.trigger_seconds ?? sum, sum, 0.001);
  let x = INSET;
  return (
    <>
      <rect class="track" x={INSET} y={42} width={width} height={3} />
      {parts.map((part, at) => {
        const from = x;
        x += part.seconds * scale;
        return <rect key={at} class={`part-${part.kind}`} x={from} y={42} width={part.seconds * scale} height={3}><title>{`${part.name}: ${length(part.seconds * 1000)}`}</title></rect>;
      })}
    </>
  );
}

/** What waits where its edges come in, before a query that holds things up: one bar more for ten times the records. */
function Queue({ query, width, upright }: { query: Query; width: number; upright: boolean }): JSX.Element | null {
  if (!query.behind || (query.level !== "warn" && query.level !== "bad")) return null;
  const bars = Math.min(5, 1 + Math.floor(Math.log10(query.behind)));
  return (
    <g class="queue">
      <title>{`${count(query.behind)} records wait`}</title>
      {Array.from({ length: bars }, (_, at) => {
        const before = -7 - at * 6;
        return upright ? <rect key={at} x={8} y={before} width={width - 16} height={4} rx={1} /> : <rect key={at} x={before} y={8} width={4} height={SHAPE.height - 16} rx={1} />;
      })}
    </g>
  );
}

function said(node: Node, behind: number | null, query: Query | undefined): string {
  switch (node.kind) {
    case "source":
      return [flowing(node) || node.label, behind ? `${count(behind)} behind` : ""].filter(Boolean).join(" · ");
    case "view":
      return node.label;
    case "query":
      if (node.level === "bad" || node.level === "off") return node.state ? word(node.state) : "";
      if (node.level === "start") return query?.running ? `first batch, ${length(query.running.seconds * 1000)}` : "starting";
      return fit(node.level === "warn" && node.state ? word(node.state) : rate(node.rate), query && load(query).share !== null ? `${percent(load(query).share)} of trigger` : "");
    case "sink":
      return node.rate === null ? (node.label === node.name ? "no rows yet" : node.label) : rate(node.rate);
  }
}

/** Both texts where a node has room for them, else the first. */
function fit(first: string, second: string): string {
  const both = [first, second].filter(Boolean).join(" · ");
  return both.length <= MOST_FIGURES ? both : first;
}

/** The rate at which records arrive in a topic, or at which a source without such a figure is read. */
function flowing(node: Node): string {
  if (node.arrival_rate !== null) return `${rate(node.arrival_rate)} arrive`;
  return node.rate === null ? "" : `${rate(node.rate)} read`;
}

/** Shorter descriptions of a source: without the verb, its lag, its rate, or `static parquet` of one without. */
function briefer(node: Node, behind: number | null): string[] {
  if (node.kind !== "source") return [];
  const lag = `${count(behind)} behind`;
  if (behind) return node.arrival_rate === null ? [lag] : [`${rate(node.arrival_rate)} · ${lag}`, lag];
  return [flowing(node) || `${node.label.endsWith("(static)") ? "static " : ""}${node.label.split(" ")[0]}`];
}

/** The first of the texts that has at most so many letters, else the last one without its middle. */
function fitting(texts: string[], most: number): string {
  return texts.find((text) => text.length <= most) ?? short(texts[texts.length - 1] ?? "", most);
}

/** At most so many letters; a longer text loses its middle, as its end tells more. */
function short(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = Math.max(2, Math.floor(most) - 1);
  const head = Math.ceil(kept * 0.4);
  return `${text.slice(0, head)}…${text.slice(text.length - (kept - head))}`;
}

function curve(from: [number, number], to: [number, number], upright: boolean): string {
  const [a, b] = bends(from, to, upright);
  return `M${from} C${a} ${b} ${to}`;
}

/** Thickness by the logarithm of the rate: ten times the rows is a little more ink. */
function wide(rows: number | null): number {
  return rows === null ? 1.25 : 1.25 + Math.log10(1 + Math.max(0, rows)) * 0.9;
}
