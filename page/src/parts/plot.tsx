// One uPlot in Preact: made once, fed at most once a second, its cursor shared with the other plots of the page.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

export interface Line {
  /** The name of the CSS variable with its colour. */
  colour: string;
  /** An area below the line down to zero, painted over the lines before it. */
  filled?: boolean;
  dashed?: boolean;
  stepped?: boolean;
  /** Points without a line between them. */
  dots?: boolean;
}

export type Values = (number | null)[];

interface Props {
  name: string;
  lines: Line[];
  /** Seconds since 1970, then the values of each line. */
  data: [number[], ...Values[]];
  /** First and last second shown. */
  range: [number, number];
  height: number;
  /** How a value of the upright axis is written. */
  write: (value: number) => string;
  /** Does the axis of time have its labels? */
  timed: boolean;
  /** The upright axis holds times: its steps are whole minutes and hours. */
  clocks?: boolean;
  /** The upright axis starts at zero. */
  grounded?: boolean;
  /** Moments to mark by a vertical line: the starts of runs. */
  marks?: number[];
  theme: string;
  /** Called with the index of the point under the cursor, or null. */
  onPoint?: (index: number | null) => void;
  sync: string;
}

// As wide as "2 min 30 s".
// A label of the time axis is centred on its tick. Nearer to the right edge it would be cut, in pixels.
const EDGE = 16;

const AXIS = 68;
const STEPS = [1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

export function Plot(props: Props): JSX.Element {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const current = useRef(props);
  current.current = props;
  const shape = props.lines.map((line) => `${line.colour}${line.filled}${line.dashed}${line.dots}`).join();

  useEffect(() => {
    const here = holder.current;
    if (!here) return;
    const made = new uPlot(options(current, here), pad(current.current.data), here);
    plot.current = made;
    const seen = new ResizeObserver(() => {
      if (here.clientWidth > 0) made.setSize({ width: here.clientWidth, height: current.current.height });
    });
    seen.observe(here);
    return () => {
      seen.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, props.theme, props.height, props.timed]);

  useEffect(() => {
    plot.current?.setData(pad(props.data), true);
  }, [props.data, props.range[0], props.range[1]]);

  return <div ref={holder} class="plot" role="img" aria-label={props.name} />;
}

function pad(data: Props["data"]): uPlot.AlignedData {
  return data as uPlot.AlignedData;
}

function options(props: { current: Props }, here: HTMLElement): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const first = props.current;
  const font = `11px ${getComputedStyle(here).fontFamily}`;
  const grid = { stroke: colour("--line"), width: 1 };
  return {
    width: Math.max(120, here.clientWidth),
    height: first.height,
    padding: [6, 8, first.timed ? 0 : 6, 0],
    legend: { show: false },
    cursor: {
      sync: { key: first.sync, setSeries: false, scales: ["x", null] },
      drag: { x: false, y: false },
      points: { size: 6 },
      y: false,
    },
    scales: {
      x: { time: true, range: () => props.current.range },
      y: {
        range: (_plot, low, high) => {
          if (low == null || high == null) return [0, 1];
          if (!props.current.grounded) return low === high ? [low - 1, high + 1] : [low, high];
          return [0, high > 0 ? high * 1.08 : 1];
        },
      },
    },
    axes: [
      {
        show: true,
        stroke: colour("--dim"),
        font,
        grid,
        ticks: { show: false },
        size: first.timed ? 24 : 0,
        space: 70,
        values: first.timed ? (plot, splits, _axis, _space, step) => splits.map((at) => (plot.valToPos(at, "x") > plot.over.clientWidth - EDGE ? "" : hour(at, step))) : () => [],
      },
      {
        stroke: colour("--dim"),
        font,
        grid,
        ticks: { show: false },
        size: AXIS,
        space: 28,
        ...(first.clocks ? { incrs: STEPS } : {}),
        gap: 6,
        values: (_plot, splits) => splits.map((value) => (value == null ? "" : props.current.write(value))),
      },
    ],
    series: [
      {},
      ...first.lines.map((line): uPlot.Series => {
        const paths = line.stepped ? uPlot.paths.stepped?.({ align: -1 }) : undefined;
        return {
          stroke: colour(line.colour),
          width: line.filled ? 1 : 1.5,
          // A line needs two points: the first batch alone is a dot.
          points: { show: line.dots ? true : (_plot, _series, first, last) => first === last, size: 4 },
          spanGaps: false,
          ...(line.filled ? { fill: colour(line.colour) } : {}),
          ...(line.dashed ? { dash: [5, 4] } : {}),
          ...(line.dots ? { paths: () => null } : paths ? { paths } : {}),
        };
      }),
    ],
    hooks: {
      draw: [(plot) => mark(plot, props.current.marks ?? [], colour("--dim"))],
      setCursor: [
        (plot) => props.current.onPoint?.(plot.cursor.left != null && plot.cursor.left >= 0 ? (plot.cursor.idx ?? null) : null),
      ],
    },
  };
}

/** A dashed line at each start of a run that is in sight. */
function mark(plot: uPlot, moments: number[], colour: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.lineWidth = 1;
  ctx.setLineDash([2, 3]);
  for (const moment of moments) {
    const x = plot.valToPos(moment, "x", true);
    if (x <= bbox.left + 1 || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText("start", x + 4, bbox.top + 10 * devicePixelRatio);
  }
  ctx.restore();
}

const two = (value: number): string => String(value).padStart(2, "0");

function hour(at: number, step: number): string {
  const date = new Date(at * 1000);
  const short = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (step >= 86400) return `${date.getMonth() + 1}-${two(date.getDate())}`;
  return step < 60 ? `${short}:${two(date.getSeconds())}` : short;
}
