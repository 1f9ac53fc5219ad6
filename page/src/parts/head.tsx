// The top of the page: is all well, and if not, where is it stuck and since when.
import type { JSX } from "preact";
import { clock, count, length, rate, when } from "../format";
import type { Link } from "../store";
import type { Failure, State } from "../wire";
import { ago, lostWords, SIGNS, verdict } from "../words";
import { CLASSES } from "./sign";
import { Term } from "./term";

export type Theme = "system" | "light" | "dark";
const SHADES: Record<Theme, string> = { system: "Auto", dark: "Dark", light: "Light" };
const NEXT: Record<Theme, Theme> = { system: "dark", dark: "light", light: "system" };

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
  const told = state && verdict(state, now);
  const broken = state?.queries.find((query) => query.name === state.worst?.query)?.failure;
  return (
    <header class="head">
      <div class="bar-top">
        <h1>
          {state?.run.pipeline ?? "Millstream"} <span class="dim brand">Millstream{state ? ` ${state.run.millstream}` : ""}</span>
        </h1>
        <div class="tools">
          <span class={`link ${link}`} data-link={link}>
            {link === "open" ? `live · ${clock(now)}` : link === "connecting" ? "connecting" : link === "ended" ? "run ended" : "no connection"}
          </span>
          <button type="button" class="button small" id="theme" onClick={() => onTheme(NEXT[theme])} aria-label={`${SHADES[theme]} colours; switch to ${SHADES[NEXT[theme]]}`}>
            {SHADES[theme]}
          </button>
          <button type="button" class="button small" onClick={onHelp} aria-label="? Keys and help">?</button>
        </div>
      </div>
      {link !== "open" && link !== "connecting" && (
        <p class="outage" role="alert">
          <span aria-hidden="true">▲ </span>
          {lostWords(link, lost, Date.now())}
        </p>
      )}
      {state && told ? (
        <div class={`verdict ${CLASSES[told.level]}`} data-level={told.level}>
          <div class="verdict-main" role="status">
            <p class="headline">
              <span aria-hidden="true" class="mark">{SIGNS[told.level]}</span> {told.headline}
              {told.since !== null && <span class="for" title={when(told.since, now)}> {told.level === "ok" ? "for" : "since"} {told.level === "ok" ? ago(told.since, now) : `${when(told.since, now)}, ${ago(told.since, now)}`}</span>}
            </p>
            {told.detail && !broken && <p class="detail">{told.detail}</p>}
              {told.also && <p class="detail">{told.also}</p>}
          </div>
          <dl class="facts">
            <Fact name={<Term of="freshness">Freshness</Term>} value={length(state.freshness_seconds === null ? null : state.freshness_seconds * 1000)} />
            <Fact name={<Term of="rows_in">In</Term>} value={rate(state.input_rate)} />
            <Fact name={<Term of="behind">Behind</Term>} value={count(state.behind)} />
            <Fact name={<Term of="letters">Dead letters</Term>} value={count(state.letters.records)} level={state.letters.records ? "warn" : ""} />
            <Fact name="Running" value={ago(Date.parse(state.run.started), now)} />
          </dl>
          {broken && state.worst && <FailureCard query={state.worst.query} failure={broken} />}
        </div>
      ) : (
        <div class="verdict idle" role="status">
          <p class="headline">{link === "refused" ? "Access denied" : "Loading the state of the run"}</p>
        </div>
      )}
    </header>
  );
}

function Fact({ name, value, level = "" }: { name: JSX.Element | string; value: string; level?: string }): JSX.Element {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd class={level}>{value}</dd>
    </div>
  );
}

// Spark's messages may contain a whole plan; the event log has the full text.
const LONGEST = 600;

function plain(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** The failure of a query: record, reason and fix. */
export function FailureCard({ query, failure }: { query: string; failure: Failure }): JSX.Element {
  const record = failure.place ? `topic ${failure.place.topic}, partition ${failure.place.partition}, offset ${failure.place.offset}` : failure.record.join("; ");
  return (
    <section class="failure" aria-label={`Why ${query} failed`} data-failure={query}>
      <dl>
        <dt>{query}</dt>
        <dd>{plain(failure.reason)}</dd>
        {record && (<><dt>record</dt><dd><b>{record}</b></dd></>)}
        {!record && failure.reads.length > 0 && (<><dt>batch {failure.batch} reads</dt><dd>{failure.reads.join("; ")}</dd></>)}
        {failure.value !== null && (<><dt>value</dt><dd><pre>{failure.value}</pre></dd></>)}
        {failure.fix && (<><dt>fix</dt><dd>{failure.fix}</dd></>)}
      </dl>
    </section>
  );
}
