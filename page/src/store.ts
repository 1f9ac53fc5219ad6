// What the page knows: the latest state, the log, and the history of the chosen query. Told to listeners once a frame.
import type { Entry, EntryEvent, Live, Point, Series, State } from "./wire";

export type Link = "connecting" | "open" | "lost" | "refused" | "ended";

// An hour of batches a second; beyond it every second point of the older half leaves. Plots stay fluent with it.
const MOST_POINTS = 3600;
const MOST_ENTRIES = 500;
// What comes while the page is in the background is folded when it is seen again, or when this many wait.
const MOST_WAITING = 2000;
// How often the title and the icon of a page in the background follow the run, in milliseconds.
const BACKGROUND = 1000;

// Told by the figures and the plots, or by nothing: not part of the log.
const UNSAID = new Set(["batch_committed", "batch_written", "idle", "described"]);

const COLUMNS = ["batch", "input_rate", "processed_rate", "newest", "watermark", "state_rows", "state_bytes"] as const;

export class Store {
  state: State | null = null;
  series: Series | null = null;
  link: Link = "connecting";
  /** When the connection was lost; milliseconds of this machine's clock. */
  lost: number | null = null;
  /** The clock of the server less that of this machine, in milliseconds. */
  private skew = 0;
  private listeners = new Set<() => void>();
  private waiting: EntryEvent[] = [];
  private live: Live | null = null;
  private asked = false;
  /** Is there something to draw? */
  private changed = false;

  constructor() {
    // A page that goes to the background gets no frame, not even one that was asked for before.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden && this.asked) setTimeout(this.tell, BACKGROUND);
    });
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The time of the run: the server's clock, or the end of a run that is over. Milliseconds since 1970. */
  now(): number {
    const run = this.state?.run;
    if (run && !run.live) return Date.parse(run.ended ?? this.state?.at ?? "") || Date.now();
    return Date.now() + this.skew;
  }

  begin(state: State): void {
    this.state = state;
    this.skew = Date.parse(state.at) - Date.now() || 0;
    this.live = null;
    this.waiting = [];
    this.changed = true;
    this.ask();
  }

  /** The newest id, to go on after. */
  last(): string | null {
    return this.waiting.at(-1)?.id ?? this.state?.id ?? null;
  }

  see(link: Link): void {
    if (link === this.link) return;
    this.lost = link === "open" ? null : (this.lost ?? Date.now());
    this.link = link;
    this.changed = true;
    this.ask();
  }

  take(live: Live): void {
    // A part that is sent only when it has changed may be in the state that still waits.
    this.live = { ...this.live, ...live };
    this.ask();
  }

  add(entry: EntryEvent): void {
    this.waiting.push(entry);
    if (this.waiting.length > MOST_WAITING) this.fold();
    this.ask();
  }

  setSeries(series: Series | null): void {
    this.series = series;
    this.changed = true;
    this.ask();
  }

  /** Fold what waits into the state, at the next frame. */
  private ask(): void {
    if (this.asked) return;
    this.asked = true;
    if (document.hidden) setTimeout(this.tell, BACKGROUND);
    else requestAnimationFrame(this.tell);
  }

  /** Fold what waits, and tell the listeners; nothing if that was done since it was asked. */
  private readonly tell = (): void => {
    if (!this.asked) return;
    this.asked = false;
    this.fold();
    // Most entries are batches of queries that nobody looks at: the next state tells what they changed.
    if (!this.changed) return;
    this.changed = false;
    for (const listener of this.listeners) listener();
  };

  private fold(): void {
    if (!this.state) return;
    if (this.live) {
      this.skew = Date.parse(this.live.at) - Date.now() || 0;
      this.state = { ...this.state, ...this.live };
      this.live = null;
      this.changed = true;
    }
    if (!this.waiting.length) return;
    const listed: Entry[] = [];
    for (const { point, ...entry } of this.waiting) {
      // Plots are drawn as the clock goes on, with the points that are there by then.
      if (point && this.series?.query === entry.query) append(this.series, point);
      if (entry.text && !UNSAID.has(entry.event)) listed.push(entry);
    }
    const id = this.waiting.at(-1)?.id ?? this.state.id;
    this.waiting = [];
    if (!listed.length) {
      this.state.id = id;
      return;
    }
    const known = new Set(this.state.log.slice(-MOST_ENTRIES).map((entry) => entry.id));
    const fresh = listed.filter((entry) => !known.has(entry.id));
    this.state.id = id;
    if (!fresh.length) return;
    this.state = { ...this.state, log: [...this.state.log, ...fresh].slice(-MOST_ENTRIES) };
    this.changed = true;
  }
}

/** Add a point that came after those that are there. */
function append(series: Series, point: Point): void {
  const last = series.time.at(-1);
  if (last !== undefined && point.time <= last) return;
  series.time.push(point.time);
  for (const column of COLUMNS) series[column].push(point[column] ?? null);
  for (const [phase, values] of Object.entries(series.phases)) values.push(point.phases[phase] ?? null);
  if (series.time.length > MOST_POINTS) thin(series);
}

/** Drop every second point of the older half, as the server does. */
function thin(series: Series): void {
  const stays = (_: unknown, at: number): boolean => at >= MOST_POINTS / 2 || at % 2 === 0;
  series.time = series.time.filter(stays);
  for (const column of COLUMNS) series[column] = series[column].filter(stays);
  for (const [phase, values] of Object.entries(series.phases)) series.phases[phase] = values.filter(stays);
}
