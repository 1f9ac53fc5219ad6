// The sign of a state: a shape and a colour, with a word beside it.
import type { JSX } from "preact";
import type { Level } from "../wire";
import { SIGNS } from "../words";

export const CLASSES: Record<Level, string> = { ok: "ok", warn: "warn", bad: "bad", off: "idle" };

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

/** A small line of the latest values, without axes. The top is their greatest, or `least` if that is more. */
export function Spark({ values, level = "ok", least = 1 }: { values: (number | null)[]; level?: Level; least?: number }): JSX.Element {
  const known = values.filter((value): value is number => value !== null);
  const most = Math.max(least, ...known);
  const step = values.length > 1 ? 70 / (values.length - 1) : 0;
  const points = values.map((value, at) => (value === null ? "" : `${(1 + at * step).toFixed(1)},${(17 - (value / most) * 15).toFixed(1)}`));
  return (
    <svg class={`spark ${CLASSES[level]}`} viewBox="0 0 72 18" width="72" height="18" aria-hidden="true">
      {known.length > 1 && <polyline points={points.filter(Boolean).join(" ")} />}
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
