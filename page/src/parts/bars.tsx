// Windows as bars: a group for each window, its columns beside each other; a window that may still change is hatched.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Values } from "./plot";

interface Props {
  name: string;
  colours: string[];
  /** Starts of the windows in seconds since 1970, then the values of each column. */
  data: [number[], ...Values[]];
  /** Windows from this start on are not final. */
  open: number;
  write: (value: number) => string;
  label: (at: number) => string;
}

const HEIGHT = 150;
const FOOT = 18;
const LEFT = 46;
const TOP = 8;
// As wide as a label of the axis with its space.
const LABEL = 52;

export function Bars({ name, colours, data, open, write, label }: Props): JSX.Element {
  const holder = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(480);
  useEffect(() => {
    const here = holder.current;
    if (!here) return;
    const seen = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    seen.observe(here);
    return () => seen.disconnect();
  }, []);
  const [starts, ...columns] = data;
  const most = nice(Math.max(0, ...columns.flat().map((value) => value ?? 0)));
  const slot = (width - LEFT - 4) / Math.max(1, starts.length);
  const gap = Math.min(8, slot * 0.22);
  const bar = (slot - gap) / Math.max(1, columns.length);
  const y = (value: number): number => TOP + (HEIGHT - TOP - FOOT) * (1 - value / most);
  const every = Math.max(1, Math.ceil(LABEL / slot));
  return (
    <div ref={holder} class="bars" role="img" aria-label={name}>
      <svg width={width} height={HEIGHT}>
        <defs>
          {colours.map((colour, at) => (
            <pattern key={colour} id={`hatch-${at}`} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <rect width="3" height="6" style={{ fill: `var(${colour})` }} />
            </pattern>
          ))}
        </defs>
        {[0, most / 2, most].map((value) => (
          <g key={value}>
            <line class="rule" x1={LEFT} x2={width} y1={y(value)} y2={y(value)} />
            <text class="tick" x={LEFT - 6} y={y(value) + 4} text-anchor="end">{write(value)}</text>
          </g>
        ))}
        {starts.map((start, at) => (
          <g key={start}>
            {columns.map((values, column) => {
              const value = values[at];
              if (value == null) return null;
              const top = y(Math.max(0, value));
              return (
                <rect
                  key={column}
                  class={start >= open ? "unfinished" : ""}
                  x={LEFT + at * slot + gap / 2 + column * bar}
                  y={top}
                  width={Math.max(1, bar - (bar > 4 ? 1 : 0))}
                  height={Math.max(value > 0 ? 1 : 0, HEIGHT - FOOT - top)}
                  style={{ fill: start >= open ? `url(#hatch-${column})` : `var(${colours[column] ?? "--s6"})`, stroke: `var(${colours[column] ?? "--s6"})` }}
                >
                  <title>{`${label(start)}: ${write(value)}${start >= open ? ", not final" : ""}`}</title>
                </rect>
              );
            })}
            {(starts.length - 1 - at) % every === 0 && (
              <text class="tick" x={Math.min(width - 18, LEFT + at * slot + slot / 2)} y={HEIGHT - 4} text-anchor="middle">{label(start)}</text>
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}

/** The next of 1, 2, 5 times a power of ten. */
function nice(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}
