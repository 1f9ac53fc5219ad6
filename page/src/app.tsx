// The page put together: what is chosen, and which part shows what.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Feed } from "./feed";
import { useKept, useSecond, useSteady, useStore } from "./hooks";
import { type Actions, listenKeys } from "./keys";
import { GraphPanel } from "./parts/graph";
import { FailureCard, Head, type Theme } from "./parts/head";
import { Help } from "./parts/help";
import { LagPanel } from "./parts/lag";
import { LettersPanel } from "./parts/letters";
import { LogPanel } from "./parts/log";
import { PlotsPanel, SPANS } from "./parts/plots";
import { QueriesPanel } from "./parts/queries";
import { ResultsPanel } from "./parts/results";
import { StatePanel } from "./parts/state";
import { AlertsPanel, FindingsPanel, GuaranteesPanel, PlanPanel } from "./parts/words";
import type { Store } from "./store";
import type { Lag, Level, Node, State } from "./wire";
import { SIGNS } from "./words";

const THEMES: Theme[] = ["system", "dark", "light"];

export function App({ store, feed }: { store: Store; feed: Feed }): JSX.Element {
  useStore(store);
  const now = useSecond(store);
  const [theme, setTheme] = useKept<Theme>("theme", "system");
  const [span, setSpan] = useKept("span", 15);
  const [wanted, setWanted] = useState(() => decodeURIComponent(location.hash.slice(1)));
  const [source, setSource] = useState("");
  const [help, setHelp] = useState(false);
  const shade = useShade(theme);

  const state = store.state;
  // A page that has lost its run does not know how that is.
  const headline = state && store.link !== "lost" ? state.headline : undefined;
  const names = state?.queries.map((query) => query.name) ?? [];
  const chosen = names.includes(wanted) ? wanted : (state?.worst?.level === "bad" ? state.worst.query : undefined) ?? names[0] ?? "";
  const choose = useSteady((query: string): void => {
    setWanted(query);
    history.replaceState(null, "", `#${encodeURIComponent(query)}`);
  });

  useEffect(() => {
    if (chosen) feed.follow(chosen, Math.max(60, span));
  }, [chosen, span, feed]);
  useEffect(() => {
    const name = state?.run.pipeline ?? "";
    document.title = headline ? `${SIGNS[headline.level]} ${name}: ${headline.word}` : name ? `■ ${name}: no connection` : "Millstream";
    showIcon(headline?.level ?? "off");
  }, [headline?.level, headline?.word, state?.run.pipeline]);

  const actions = useRef<Actions | null>(null);
  actions.current = {
    help: () => setHelp(true),
    theme: () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system"),
    span: () => setSpan(SPANS[(SPANS.findIndex(([minutes]) => minutes === span) + 1) % SPANS.length]?.[0] ?? 15),
    row: (row) => names[row] && choose(names[row]),
    step: (by) => {
      const next = names[Math.max(0, Math.min(names.length - 1, names.indexOf(chosen) + by))];
      if (next) choose(next);
    },
  };
  useEffect(() => listenKeys(() => actions.current as Actions), []);

  const pick = useSteady((node: Node): void => {
    if (node.kind === "source") {
      setSource(node.name);
      document.getElementById("lag")?.scrollIntoView({ block: "nearest" });
    }
    const query = node.queries.includes(chosen) ? chosen : node.queries[0];
    if (query) choose(query);
  });

  return (
    <>
      <Head state={state} link={store.link} lost={store.lost} now={now} theme={theme} onTheme={setTheme} onHelp={() => setHelp(true)} />
      <main>
        {state ? (
          <Body {...{ state, store, now, chosen, choose, pick, source, setSource, span, setSpan }} theme={shade} />
        ) : (
          <section class="panel">
            <p class="empty">
              {store.link === "refused"
                ? "This run requires a token. Open the address that 'millstream run' printed; it contains the token."
                : "There is no data of a run yet. Start one in the project's folder with: millstream run. This page then updates automatically."}
            </p>
          </section>
        )}
      </main>
      <Help open={help} onClose={() => setHelp(false)} />
    </>
  );
}

interface BodyProps {
  state: State;
  store: Store;
  now: number;
  chosen: string;
  choose: (query: string) => void;
  pick: (node: Node) => void;
  source: string;
  setSource: (name: string) => void;
  span: number;
  setSpan: (minutes: number) => void;
  theme: string;
}

function Body({ state, store, now, chosen, choose, pick, source, setSource, span, setSpan, theme }: BodyProps): JSX.Element {
  const query = state.queries.find((one) => one.name === chosen);
  const { nodes, edges } = state.graph;
  const live = state.run.live;
  // Parts are drawn again when they are given something else: what is made here stays the same as long as it can.
  const waiting = useMemo(() => behind(state.lag), [state.lag]);
  const [sinks, sources] = useMemo(() => {
    const own = nodes.filter((node) => node.queries.includes(chosen));
    return [own.filter((node) => node.kind === "sink" && node.rows), own.filter((node) => node.messages)];
  }, [nodes, chosen]);
  const today = new Date(now).setHours(0, 0, 0, 0);
  const watermark = query?.watermark ? Date.parse(query.watermark) / 1000 : null;
  return (
    <>
      <AlertsPanel alerts={state.alerts} except={state.headline.alert} now={now} />
      {state.queries.map((one) => one.failure && one.name !== state.worst?.query && <FailureCard key={one.name} query={one.name} failure={one.failure} />)}
      <div class="first">
        <GraphPanel nodes={nodes} edges={edges} queries={state.queries} behind={waiting} chosen={chosen} live={live && store.link === "open"} onChoose={pick} />
        <ResultsPanel sinks={sinks} pipeline={state.run.pipeline} query={chosen} final={watermark ?? Math.floor(now / 60000) * 60} live={live} theme={theme} />
      </div>
      <QueriesPanel queries={state.queries} chosen={chosen} now={now} onChoose={choose} />
      <div class="two">
        <div class="stack">
          <PlotsPanel query={query} series={store.series} now={now} started={Date.parse(state.run.started)} span={span} theme={theme} onSpan={setSpan} />
          {query?.state_rows != null && <StatePanel query={query.name} keys={query.state_rows} live={live} />}
          <GuaranteesPanel guarantees={state.guarantees} query={chosen} />
          <PlanPanel plans={state.plans} query={chosen} />
        </div>
        <div class="stack">
          <LagPanel lag={state.lag} query={chosen} left={query?.caught_up_in_seconds ?? null} sources={sources} now={now} live={live} source={source} onSource={setSource} />
          <LettersPanel letters={state.letters} today={today} live={live} />
          <LogPanel log={state.log} today={today} />
        </div>
      </div>
      <FindingsPanel findings={state.findings} />
    </>
  );
}

const SHADES_OF_ICON: Record<Level, string> = { ok: "%2300805e", start: "%230072b2", warn: "%23c77700", bad: "%23c4321b", off: "%23788593" };
const SHAPES: Record<Level, string> = {
  ok: "%3Ccircle cx='8' cy='8' r='7'/%3E",
  start: "%3Cpath d='M8 1a7 7 0 0 0 0 14zM8 2.5a5.5 5.5 0 0 1 0 11z'/%3E",
  warn: "%3Cpath d='M8 1l7.5 14H.5z'/%3E",
  bad: "%3Cpath d='M3 1 1 3l5 5-5 5 2 2 5-5 5 5 2-2-5-5 5-5-2-2-5 5z'/%3E",
  off: "%3Crect x='2' y='2' width='12' height='12'/%3E",
};

/** The state as the icon of the tab: its shape and its colour. */
function showIcon(level: Level): void {
  const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (icon) icon.href = `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='${SHADES_OF_ICON[level]}'%3E${SHAPES[level]}%3C/svg%3E`;
}

/** Records that wait, by the id of the source's node: of the query that is furthest behind. */
function behind(lag: Lag[]): Map<string, number> {
  const byQuery = new Map<string, number>();
  for (const topic of lag) {
    const key = `${topic.source}\n${topic.query}`;
    byQuery.set(key, (byQuery.get(key) ?? 0) + (topic.behind ?? 0));
  }
  const worst = new Map<string, number>();
  for (const [key, records] of byQuery) {
    const id = `source.${key.split("\n")[0]}`;
    worst.set(id, Math.max(worst.get(id) ?? 0, records));
  }
  return worst;
}

/** Light or dark, as chosen or as the system is. */
function useShade(theme: Theme): string {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const [system, setSystem] = useState(dark.matches ? "dark" : "light");
  useEffect(() => {
    const changed = (event: MediaQueryListEvent): void => setSystem(event.matches ? "dark" : "light");
    dark.addEventListener("change", changed);
    return () => dark.removeEventListener("change", changed);
  }, []);
  const shade = theme === "system" ? system : theme;
  // Before anything is drawn: plots read their colours from the document.
  document.documentElement.dataset["theme"] = shade;
  return shade;
}
