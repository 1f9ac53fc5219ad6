// The sign of a state: a shape and a colour, with a word beside it.
import type { JSX } from "preact";
import type { Level, Part } from "../wire";
import { SIGNS } from "../words";

export const CLASSES: Record<Level, string> = { ok: "ok", start: "start", warn: "warn", bad: "bad", off: "idle" };

export function Sign({ level, word }: { level: Level; word: string }): JSX.Element {
  return (
    <span class={`sign ${CLASSES[level]}`}>
      <span class="mark" aria-hidden="true">
        {SIGNS[level]}
      </span>
      {word}
    </span>
  );
}

/** A small line of the latest values, without axes, broken where there is none. The top is their greatest, or `least`. */
export function Spark({ values, level = "ok", least = 1, wide = false }: { values: (number | null)[]; level?: Level; least?: number; wide?: boolean }): JSX.Element {
  const known = values.filter((value): value is number => value !== null);
  const [width, height] = wide ? [160, 30] : [72, 18];
  const most = Math.max(least, ...known);
  const step = values.length > 1 ? (width - 2) / (values.length - 1) : 0;
  const pieces: string[][] = [[]];
  values.forEach((value, at) => {
    if (value === null) pieces.push([]);
    else pieces.at(-1)?.push(`${(1 + at * step).toFixed(1)},${(height - 1 - (value / most) * (height - 3)).toFixed(1)}`);
  });
  return (
    <svg class={`spark ${CLASSES[level]}`} viewBox={`0 0 ${width} ${height}`} width={width} height={height} preserveAspectRatio="none" aria-hidden="true">
      {pieces.map((points, at) => points.length > 1 && <polyline key={at} points={points.join(" ")} />)}
    </svg>
  );
}

/** A share of a whole as a bar; above one it is full and red. */
export function Bar({ share, level }: { share: number | null; level?: Level }): JSX.Element {
  const width = `${Math.min(1, Math.max(0, share ?? 0)) * 100}%`;
  const shown = level ?? (share !== null && share > 1 ? "bad" : share !== null && share > 0.8 ? "warn" : "ok");
  return (
    <span class="bar" aria-hidden="true">
      <span class={CLASSES[shown]} style={{ width }} />
    </span>
  );
}

/** The parts of a batch's time, as a share of `whole` seconds; beyond it they fill the bar. */
export function PartsBar({ parts, whole }: { parts: Part[]; whole: number }): JSX.Element {
  const shown = parts.filter((part) => part.kind !== "state");
  const sum = shown.reduce((total, part) => total + part.seconds, 0);
  const scale = 100 / Math.max(whole, sum, 0.001);
  return (
    <span class="parts" aria-hidden="true">
      {shown.map((part, at) => <span key={at} class={`part-${part.kind}`} style={{ width: `${part.seconds * scale}%` }} title={part.name} />)}
    </span>
  );
}
