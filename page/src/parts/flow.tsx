// Dots that move along the edges of the graph as rows do: more of them, and faster, where more rows pass a second.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface Stream {
  id: string;
  from: [number, number];
  to: [number, number];
  upright: boolean;
  rate: number;
}

// More than these are a swarm, and each is a layer for the browser to move.
const MOST = 48;
const STEPS = 12;

/** How many dots, and how many milliseconds each takes: both by the logarithm of the rate, in steps. */
export function pace(rate: number): [number, number] {
  const size = Math.round(Math.log10(1 + rate) * 2) / 2;
  return [Math.max(1, Math.min(4, Math.round(size * 1.3))), 5200 / (0.8 + size)];
}

export function Flow({ streams }: { streams: Stream[] }): JSX.Element {
  const holder = useRef<HTMLDivElement>(null);
  const shape = streams.map((stream) => [stream.id, stream.from, stream.to, pace(stream.rate)].join()).join(";");
  useEffect(() => {
    const here = holder.current;
    if (!here || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const dots: HTMLElement[] = [];
    for (const stream of streams) {
      const [many, duration] = pace(stream.rate);
      const steps = Array.from({ length: STEPS + 1 }, (_, at) => ({ transform: spot(stream, at / STEPS) }));
      for (let dot = 0; dot < many && dots.length < MOST; dot++) {
        const made = document.createElement("i");
        // Only its transform changes: the browser moves it without this page's help.
        made.animate(steps, { duration, delay: -(dot / many) * duration, iterations: Infinity });
        dots.push(made);
      }
    }
    here.replaceChildren(...dots);
    return () => here.replaceChildren();
  }, [shape]);
  return <div class="flow" ref={holder} aria-hidden="true" />;
}

/** Where a dot is after a share of its way, on the curve that the edge is drawn by. */
function spot({ from, to, upright }: Stream, share: number): string {
  const [a, b] = bends(from, to, upright);
  const rest = 1 - share;
  const along = (axis: 0 | 1): number =>
    rest ** 3 * from[axis] + 3 * rest ** 2 * share * a[axis] + 3 * rest * share ** 2 * b[axis] + share ** 3 * to[axis];
  return `translate(${along(0).toFixed(1)}px, ${along(1).toFixed(1)}px)`;
}

/** The two points by which an edge is bent. */
export function bends(from: [number, number], to: [number, number], upright: boolean): [[number, number], [number, number]] {
  const axis = upright ? 1 : 0;
  const bend = Math.max(16, (to[axis] - from[axis]) / 2);
  return upright ? [[from[0], from[1] + bend], [to[0], to[1] - bend]] : [[from[0] + bend, from[1]], [to[0] - bend, to[1]]];
}
