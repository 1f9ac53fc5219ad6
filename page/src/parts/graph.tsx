// The graph: sources, views, queries and sinks; edges by rate, queries by batch time over trigger.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count, percent, rate } from "../format";
import { steady } from "../hooks";
import { place, type Shape } from "../layout";
import type { Edge, Kind, Node } from "../wire";
import { SIGNS } from "../words";
import { Empty, Panel } from "./panel";
import { CLASSES } from "./sign";
import { Term } from "./term";

const SHAPE: Shape = { width: 172, height: 46, gap: 9, between: [56, 170] };
const TITLES: [Kind, string][] = [
  ["source", "Sources"],
  ["view", "Views"],
  ["query", "Queries"],
  ["sink", "Sinks"],
];
const PAD = 4;

interface Props {
  nodes: Node[];
  edges: Edge[];
  behind: Map<string, number>;
  chosen: string;
  onChoose: (node: Node) => void;
}

export const GraphPanel = steady(function GraphPanel({ nodes, edges, behind, chosen, onChoose }: Props): JSX.Element {
  const holder = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(1200);
  useEffect(() => {
    const here = holder.current;
    if (!here) return;
    // Without its padding, which `clientWidth` has.
    const seen = new ResizeObserver(([entry]) => entry && setRoom(entry.contentRect.width - 2 * PAD));
    seen.observe(here);
    return () => seen.disconnect();
  }, []);
  const shape = nodes.map((node) => node.id).join() + edges.map((edge) => edge.from + edge.to).join();
  const placed = useMemo(() => {
    const sinks = new Set(nodes.filter((node) => node.kind === "sink").map((node) => node.id));
    return place(nodes.map((node) => node.id), edges, sinks, room, SHAPE);
  }, [shape, room]);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const lit = new Set(nodes.filter((node) => node.queries.includes(chosen)).map((node) => node.id));
  return (
    <Panel id="graph" title="Pipeline" aside={<Legend />}>
      <div class="wide graph" role="region" aria-label="Graph of the pipeline" tabIndex={0} ref={holder}>
        {nodes.length === 0 ? (
          <Empty>The graph appears after the run has loaded the spec.</Empty>
        ) : (
          <svg width={placed.width + 2 * PAD} height={placed.height + 2 * PAD} role="group" aria-label="Sources, views, queries and sinks">
            <g transform={`translate(${PAD},${PAD})`}>
              {edges.map((edge) => {
                const from = placed.boxes.get(edge.from);
                const to = placed.boxes.get(edge.to);
                if (!from || !to) return null;
                const on = lit.has(edge.from) && lit.has(edge.to);
                return (
                  <path
                    key={`${edge.from}>${edge.to}`}
                    class={on ? "edge on" : "edge"}
                    d={curve(from.x + SHAPE.width, from.y + SHAPE.height / 2, to.x, to.y + SHAPE.height / 2)}
                    stroke-width={wide(edge.rate)}
                  >
                    <title>{`${byId.get(edge.from)?.name ?? ""} to ${byId.get(edge.to)?.name ?? ""}: ${edge.rate === null ? "rate unknown" : rate(edge.rate)}`}</title>
                  </path>
                );
              })}
              {nodes.map((node) => {
                const at = placed.boxes.get(node.id);
                return at && <Shown key={node.id} node={node} x={at.x} y={at.y} lit={lit.has(node.id)} chosen={node.kind === "query" && node.name === chosen} behind={behind.get(node.id) ?? null} onChoose={onChoose} />;
              })}
            </g>
          </svg>
        )}
      </div>
    </Panel>
  );
});

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
  x: number;
  y: number;
  lit: boolean;
  chosen: boolean;
  behind: number | null;
  onChoose: (node: Node) => void;
}

function Shown({ node, x, y, lit, chosen, behind, onChoose }: ShownProps): JSX.Element {
  const figures = short(said(node, behind), 24);
  const well = node.level === "ok" || node.level === "off";
  const name = short(node.name, node.kind === "query" || !well ? 18 : 20);
  const choose = (): void => onChoose(node);
  // A reader of screens hears what is written in the node, in its order, after what it is.
  const title = `${node.kind} ${node.name}: ${[node.label, node.state].filter(Boolean).join(", ")}`;
  return (
    <g
      class={`node ${node.kind} ${CLASSES[node.level]} ${lit ? "on" : ""} ${chosen ? "chosen" : ""} ${well ? "" : "ill"}`}
      transform={`translate(${x},${y})`}
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
      <rect class="box" width={SHAPE.width} height={SHAPE.height} rx={node.kind === "query" ? 6 : 3} />
      <rect class="stripe" width={3} height={SHAPE.height - 12} x={0} y={6} rx={1.5} />
      <text class="name" x={13} y={18}>
        {name}
      </text>
      {" "}
      <text class="figures" x={13} y={34}>
        {figures}
      </text>
      {(node.kind === "query" || !well) && (
        <text class="glyph" x={SHAPE.width - 11} y={18} text-anchor="end" aria-hidden="true">
          {SIGNS[node.level]}
        </text>
      )}
      {node.kind === "query" && node.busy !== null && (
        <>
          <rect class="track" x={13} y={40} width={SHAPE.width - 24} height={2} />
          <rect class={`busy ${node.busy > 1 ? "bad" : node.busy > 0.8 ? "warn" : "ok"}`} x={13} y={40} width={Math.min(1, node.busy) * (SHAPE.width - 24)} height={2} />
        </>
      )}
    </g>
  );
}

function said(node: Node, behind: number | null): string {
  switch (node.kind) {
    case "source":
      return [node.rate === null ? node.label : rate(node.rate), behind ? `${count(behind)} behind` : ""].filter(Boolean).join(" · ");
    case "view":
      return node.label;
    case "query":
      if (node.level === "bad" || node.level === "off") return node.state ?? "";
      return [node.level === "ok" ? "" : node.state, rate(node.rate), node.busy === null ? "" : `${percent(node.busy)} of trigger`].filter(Boolean).join(" · ");
    case "sink":
      return node.rate === null ? node.label : `${rate(node.rate)}`;
  }
}

function short(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function curve(x1: number, y1: number, x2: number, y2: number): string {
  const bend = Math.max(24, (x2 - x1) / 2);
  return `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
}

/** Thickness by the logarithm of the rate: ten times the rows is a little more ink. */
function wide(rows: number | null): number {
  return rows === null ? 1.25 : 1.25 + Math.log10(1 + Math.max(0, rows)) * 0.9;
}
