// The top of the page: is all well, and if not, where is it stuck and since when.
import type { JSX } from "preact";
import { clock, plural, when } from "../format";
import type { Link } from "../store";
import type { Failure, State } from "../wire";
import { ago, lostWords, SIGNS } from "../words";
import { Controls } from "./controls";
import { Kpis } from "./kpis";
import { CLASSES } from "./sign";

export type Theme = "system" | "light" | "dark";
const SHADES: Record<Theme, string> = { system: "Auto", dark: "Dark", light: "Light" };
const NEXT: Record<Theme, Theme> = { system: "dark", dark: "light", light: "system" };
const ICONS: Record<Theme, string> = { system: "◑", dark: "☾", light: "☀" };

interface Props {
  state: State | null;
  link: Link;
  lost: number | null;
  now: number;
  theme: Theme;
  onTheme: (theme: Theme) => void;
  onHelp: () => void;
}

export function Head({ state, link, lost, now, theme, onTheme, onHelp }: Props): JSX.Element {
  const headline = state?.headline;
  const since = headline?.since ? Date.parse(headline.since) : null;
  const broken = state?.queries.find((query) => query.name === state.worst?.query)?.failure;
  return (
    <header class="head">
      <div class="bar-top">
        <div class="title">
          <Mark />
          <h1>{state?.run.pipeline ?? "Millstream"}</h1>
          {state && (
            <span class="dim brand">
              <span title={state.run.id}>up {ago(Date.parse(state.run.started), now)}</span>
              {state.letters.records > 0 && <a class="warn" href="#letters" onClick={toLetters}>▲ {plural(state.letters.records, "dead letter")}</a>}
              {state.findings.length === 0 && state.guarantees.length > 0 && <span class="ok">✓ no findings</span>}
            </span>
          )}
        </div>
        <div class="tools">
          <span class={`link ${link}`} data-link={link}>
            {link === "open" && state?.run.live ? `live · ${clock(now)}` : link === "connecting" ? "connecting" : link === "open" || link === "ended" ? "run ended" : "no connection"}
          </span>
          {state && <Controls state={state} link={link} />}
          <button type="button" class="button small icon" id="theme" onClick={() => onTheme(NEXT[theme])} title={`${SHADES[theme]} colours`} aria-label={`${ICONS[theme]} ${SHADES[theme]} colours; switch to ${SHADES[NEXT[theme]]}`}>
            {ICONS[theme]}
          </button>
          <button type="button" class="button small icon" onClick={onHelp} title="Keys and help" aria-label="? Keys and help">?</button>
        </div>
      </div>
      {link !== "open" && link !== "connecting" && (
        <p class="outage" role="alert">
          <span aria-hidden="true">▲ </span>
          {lostWords(link, lost, Date.now())}
        </p>
      )}
      {state && headline ? (
        <div class={`verdict ${CLASSES[headline.level]}`} data-level={headline.level}>
          <div class="verdict-main">
            {/* A reader of screens is told what has changed, and not each second how long it has been so. */}
            <p class="headline" role="status">
              <span aria-hidden="true" class="mark">{SIGNS[headline.level]}</span> {headline.text}
            </p>
            {headline.detail && !broken && <p class="detail">{headline.detail}</p>}
            <p class="also" role="status">{headline.also || null}</p>
            {since !== null && <p class="for">since {when(since, now)}, {ago(since, now)}</p>}
          </div>
          <Kpis state={state} now={now} />
          {broken && state.worst && <FailureCard query={state.worst.query} failure={broken} run={after(state)} />}
        </div>
      ) : (
        <div class="verdict idle" role="status">
          <p class="headline">{link === "refused" ? "Access denied" : "Loading the state of the run"}</p>
        </div>
      )}
    </header>
  );
}

/** The address keeps the chosen query, so the link scrolls by itself. */
function toLetters(event: Event): void {
  event.preventDefault();
  document.getElementById("letters")?.scrollIntoView({ block: "start" });
  document.getElementById("letters-title")?.focus({ preventScroll: true });
}

function Mark(): JSX.Element {
  return (
    <svg class="logo" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      <circle cx="10" cy="10" r="8" />
      <path d="M2.4 12.4q2.5-3 5 0t5 0t5.2 0" />
    </svg>
  );
}

// Spark's messages may contain a whole plan; the event log has the full text.
const LONGEST = 600;

function plain(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** What a failed query does to the run. */
function after(state: State): string {
  const again = "start it again with: millstream run";
  return state.run.live && !state.run.ended
    ? `is ending: the other queries finish and commit their batches, and there are no more actions; then ${again}`
    : `has ended; ${again}`;
}

/** The failure of a query: record, reason and fix; where there is room, also what becomes of the run. */
export function FailureCard({ query, failure, run }: { query: string; failure: Failure; run?: string }): JSX.Element {
  const record = failure.place ? `topic ${failure.place.topic}, partition ${failure.place.partition}, offset ${failure.place.offset}` : failure.record.join("; ");
  return (
    <section class="failure" aria-label={`Why ${query} failed`} data-failure={query}>
      <dl>
        <dt>{query}</dt>
        <dd>{plain(failure.reason)}</dd>
        {record && (<><dt>{failure.place ? "record" : "records"}</dt><dd><b>{record}</b></dd></>)}
        {!record && failure.reads.length > 0 && (<><dt>batch {failure.batch} reads</dt><dd>{failure.reads.join("; ")}</dd></>)}
        {failure.value !== null && (<><dt>value</dt><dd><pre>{failure.value}</pre></dd></>)}
        {failure.fix && (<><dt>fix</dt><dd>{failure.fix}</dd></>)}
        {run && (<><dt>the run</dt><dd data-run>{run}</dd></>)}
      </dl>
    </section>
  );
}
