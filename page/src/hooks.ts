// Small hooks: the store, a second that passes, a question asked again and again, a choice that is remembered.
import { Component, type FunctionComponent, h, type JSX } from "preact";
import { useCallback, useEffect, useReducer, useRef, useState } from "preact/hooks";
import { get } from "./feed";
import type { Store } from "./store";

/** Draw again when the store tells. */
export function useStore(store: Store): void {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => store.listen(() => draw(undefined)), [store]);
}

/** The time of the run, once a second. */
export function useSecond(store: Store): number {
  const [now, set] = useState(store.now());
  useEffect(() => {
    const timer = setInterval(() => set(store.now()), 1000);
    return () => clearInterval(timer);
  }, [store]);
  return now;
}

export interface Asked<T> {
  value: T | null;
  error: string;
}

/** The answer to `path`, asked every `ms` while the page is seen and `live`; null as the path asks nothing. */
export function useAsked<T>(path: string | null, ms: number, live: boolean): Asked<T> {
  const [asked, set] = useState<Asked<T> & { path: string | null }>({ value: null, error: "", path: null });
  useEffect(() => {
    if (!path) return;
    const stop = new AbortController();
    const ask = (): void => {
      if (document.hidden) return;
      get<T>(path, stop.signal)
        .then((value) => set({ value, error: "", path }))
        .catch((error: unknown) => {
          if (stop.signal.aborted) return;
          // `fetch` gives a TypeError without a response, in words that differ between browsers.
          const message = error instanceof Error && !(error instanceof TypeError) ? error.message : "no response from the run; showing the last data";
          set((before) => ({ value: before.path === path ? before.value : null, error: message, path }));
        });
    };
    ask();
    const timer = live ? setInterval(ask, ms) : undefined;
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [path, ms, live]);
  return asked.path === path ? asked : { value: null, error: "" };
}

/** What was chosen, kept in this browser. */
export function useKept<T>(key: string, first: T): [T, (value: T) => void] {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const kept = useRef(new Map<string, T>());
  if (!kept.current.has(key)) kept.current.set(key, recall(key, first));
  const value = kept.current.get(key) as T;
  const keep = useCallback(
    (next: T): void => {
      kept.current.set(key, next);
      remember(key, next);
      draw(undefined);
    },
    [key],
  );
  return [value, keep];
}

/** The same function at each drawing, which does what the latest one given does. */
export function useSteady<Given extends unknown[]>(act: (...given: Given) => void): (...given: Given) => void {
  const latest = useRef(act);
  latest.current = act;
  return useRef((...given: Given) => latest.current(...given)).current;
}

/** The part, drawn again only when one of its properties is another one. */
export function steady<Props extends object>(Part: FunctionComponent<Props>): FunctionComponent<Props> {
  class Steady extends Component<Props> {
    override shouldComponentUpdate(next: Props): boolean {
      const before = this.props as Record<string, unknown>;
      return Object.entries(next).some(([name, value]) => before[name] !== value);
    }

    override render(): JSX.Element {
      return h(Part, this.props as Props & JSX.IntrinsicAttributes);
    }
  }
  return Steady as unknown as FunctionComponent<Props>;
}

function recall<T>(key: string, first: T): T {
  try {
    const text = localStorage.getItem(`millstream.${key}`);
    return text === null ? first : (JSON.parse(text) as T);
  } catch {
    // No storage, or something else's text in it: the page works without.
    return first;
  }
}

function remember(key: string, value: unknown): void {
  try {
    localStorage.setItem(`millstream.${key}`, JSON.stringify(value));
  } catch {
    // A private window may refuse; the choice then lasts as long as the page.
  }
}
