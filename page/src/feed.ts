// Brings the server's news into the store, and mends a lost connection by itself.
import type { Store } from "./store";
import type { EntryEvent, Live, Series, State } from "./wire";

// The server tells the state every two seconds; four times that without a word is a dead connection.
const SILENCE = 8000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 5000;

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The answer to a question; raises Refused where the server says no. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await fetch(path, { cache: "no-store", credentials: "same-origin", ...(signal ? { signal } : {}) });
  if (answer.ok) return (await answer.json()) as T;
  const body = (await answer.json().catch(() => ({}))) as { error?: string; fix?: string };
  throw new Refused(answer.status, [body.error ?? `the server responded with status ${answer.status}`, body.fix].filter(Boolean).join("; "));
}

/** Ask the run to do something; gives its answer in words. Raises Refused. */
export async function act(path: string): Promise<string> {
  const answer = await fetch(path, { method: "POST", cache: "no-store", credentials: "same-origin", headers: { "X-Millstream": "1" } });
  const body = (await answer.json().catch(() => ({}))) as { done?: string; error?: string; fix?: string };
  if (answer.ok) return body.done ?? "done";
  throw new Refused(answer.status, [body.error ?? `the server responded with status ${answer.status}`, body.fix].filter(Boolean).join("; "));
}

export class Feed {
  private source: EventSource | null = null;
  private wait = FIRST_WAIT;
  private heard = 0;
  private query: string | null = null;
  private minutes = 60;
  private asking: AbortController | null = null;
  /** Was the state loaded again because the last stream could not go on after it? */
  private reloaded = false;

  constructor(private readonly store: Store) {}

  start(): void {
    void this.load();
    setInterval(() => this.watch(), 1000);
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.watch();
    });
  }

  /** Follow the plots of this query. */
  follow(query: string, minutes: number): void {
    if (this.query === query && this.minutes === minutes) return;
    const other = this.query !== query;
    this.query = query;
    this.minutes = minutes;
    if (other) this.store.setSeries(null);
    void this.history();
  }

  private async load(): Promise<void> {
    try {
      this.store.begin(await get<State>("api/state"));
      void this.history();
      this.open();
    } catch (error) {
      this.again(error instanceof Refused && error.status === 401 ? "refused" : "lost");
    }
  }

  private async history(): Promise<void> {
    const query = this.query;
    if (!query) return;
    this.asking?.abort();
    const asking = new AbortController();
    this.asking = asking;
    try {
      const path = `api/series?query=${encodeURIComponent(query)}&minutes=${this.minutes}`;
      const series = await get<Series>(path, asking.signal);
      if (query === this.query) this.store.setSeries(series);
    } catch (error) {
      if (asking.signal.aborted) return;
      // Asked again when the connection is back: a page that runs does so at `hello`.
      if (error instanceof Refused) this.store.setSeries(null);
    }
  }

  private open(): void {
    this.source?.close();
    const after = this.store.last();
    const source = new EventSource(after ? `api/events?after=${encodeURIComponent(after)}` : "api/events");
    this.source = source;
    this.heard = Date.now();
    source.addEventListener("hello", (event) => {
      const opened = JSON.parse(event.data as string) as { run: string; replayed: boolean };
      this.heard = Date.now();
      const other = opened.run !== this.store.state?.run.id;
      if (other || !opened.replayed) {
        source.close();
        // Once at once; a server that says so again is asked less and less often.
        if (this.reloaded) this.again("lost");
        else void this.load();
        this.reloaded = true;
        return;
      }
      this.wait = FIRST_WAIT;
      this.reloaded = false;
      // What was missed comes as entries; the history is asked again in case the server itself was away.
      if (this.store.link !== "open") void this.history();
      this.store.see("open");
    });
    source.addEventListener("entry", (event) => {
      this.heard = Date.now();
      this.store.add(JSON.parse(event.data as string) as EntryEvent);
    });
    source.addEventListener("state", (event) => {
      this.heard = Date.now();
      this.store.take(JSON.parse(event.data as string) as Live);
    });
    source.addEventListener("bye", () => this.store.see("ended"));
    source.onerror = () => {
      if (this.source !== source) return;
      // The browser tries again by itself, and names the last entry it saw; unless the server answered with an error.
      if (source.readyState === EventSource.CLOSED) this.again("lost");
      else if (this.store.link !== "ended") this.store.see("lost");
    };
  }

  private watch(): void {
    if (this.source?.readyState === EventSource.OPEN && Date.now() - this.heard > SILENCE) {
      this.again("lost");
    }
  }

  private again(link: "lost" | "refused" | "ended"): void {
    this.store.see(link);
    this.source?.close();
    const wait = this.wait;
    this.wait = Math.min(LONGEST_WAIT, wait * 2);
    setTimeout(() => void this.load(), wait);
  }
}
